"""
The field types of the wire: fixed-width integers, length-encoded integers and strings.

All integers are little-endian. mysql-mimic has packers and readers for the same fields; its
readers return short at the end of a buffer and never end on a missing NUL, so these are our own,
and event codecs can use them without importing that library.
Source: dump-protocol, Notation.
"""

from __future__ import annotations

from struct import Struct
from typing import Final

from .errors import FormatError, Truncated

U16: Final = Struct("<H")
U32: Final = Struct("<I")
U64: Final = Struct("<Q")
_U48_PARTS: Final = Struct("<IH")

LENENC_NULL: Final = 0xFB  # SQL NULL in a text row

Buffer = bytes | bytearray | memoryview


def u24(value: int) -> bytes:
    """Return *value* in 3 bytes."""
    return value.to_bytes(3, "little")


def lenenc(value: int) -> bytes:
    """Return *value* as a length-encoded integer of 1, 3, 4 or 9 bytes, the shortest that fits."""
    if value < LENENC_NULL:
        return value.to_bytes(1, "little")
    if value < 1 << 16:
        return b"\xfc" + value.to_bytes(2, "little")
    if value < 1 << 24:
        return b"\xfd" + value.to_bytes(3, "little")
    return b"\xfe" + value.to_bytes(8, "little")


def lestr(data: bytes) -> bytes:
    """Return *data* behind its length."""
    return lenenc(len(data)) + data


def zstr(data: bytes) -> bytes:
    """Return *data* with the NUL that ends it."""
    assert 0 not in data  # the reader would end there
    return data + b"\0"


class FieldReader:
    """
    A cursor over one payload or event that never reads past its end.

    Each method takes the next field. All raise `Truncated` with the offset when the data ends
    inside the field; strings come as `bytes`, copied.

    Args:
        data: the bytes to read; not changed, not copied.
        offset: where to begin.
        what: what the bytes are, for error texts ("greeting", "table map event").
    """

    __slots__ = ("_end", "data", "offset", "what")

    def __init__(self, data: Buffer, offset: int = 0, *, what: str = "payload") -> None:
        assert offset >= 0
        self.data = data
        self.offset = offset
        self.what = what
        self._end = len(data)

    @property
    def remaining(self) -> int:
        """Bytes not read yet."""
        return self._end - self.offset

    def take(self, size: int) -> bytes:
        """Take *size* bytes."""
        return bytes(self.data[self._advance(size) : self.offset])

    def rest(self) -> bytes:
        """Take everything to the end."""
        return self.take(self.remaining)

    def skip(self, size: int) -> None:
        """Pass over *size* bytes."""
        self._advance(size)

    def u8(self) -> int:
        """Take a 1-byte integer."""
        return self.data[self._advance(1)]

    def u16(self) -> int:
        """Take a 2-byte integer."""
        value: int = U16.unpack_from(self.data, self._advance(2))[0]
        return value

    def u24(self) -> int:
        """Take a 3-byte integer."""
        return int.from_bytes(self.take(3), "little")

    def u32(self) -> int:
        """Take a 4-byte integer."""
        value: int = U32.unpack_from(self.data, self._advance(4))[0]
        return value

    def u48(self) -> int:
        """Take a 6-byte integer."""
        low, high = _U48_PARTS.unpack_from(self.data, self._advance(6))
        value: int = high << 32 | low
        return value

    def u64(self) -> int:
        """Take an 8-byte integer."""
        value: int = U64.unpack_from(self.data, self._advance(8))[0]
        return value

    def lenenc(self) -> int:
        """
        Take a length-encoded integer; longer forms of a small value are accepted.

        Raises:
            FormatError: the byte is NULL (fb) or undefined (ff).
        """
        start = self.offset
        value = self.lenenc_or_null()
        if value is None:
            raise FormatError(f"{self.what}: NULL where an integer is needed", offset=start)
        return value

    def lenenc_or_null(self) -> int | None:
        """
        Take a length-encoded integer, or None for SQL NULL.

        Raises:
            FormatError: the byte is undefined (ff).
        """
        first = self.u8()
        if first < LENENC_NULL:
            return first
        if first == LENENC_NULL:
            return None
        if first == 0xFC:
            return self.u16()
        if first == 0xFD:
            return self.u24()
        if first == 0xFE:
            return self.u64()
        raise FormatError(f"{self.what}: ff is no length", offset=self.offset - 1)

    def lestr(self) -> bytes:
        """Take a string behind its length."""
        return self.take(self.lenenc())

    def lestr_or_null(self) -> bytes | None:
        """Take a string behind its length, or None for SQL NULL."""
        size = self.lenenc_or_null()
        return None if size is None else self.take(size)

    def u8str(self) -> bytes:
        """Take a string behind a 1-byte length."""
        return self.take(self.u8())

    def zstr(self) -> bytes:
        """Take a string that ends with a NUL, and the NUL."""
        start = self.offset
        data = self.rest()
        size = data.find(0)
        if size < 0:
            self.offset = start
            raise Truncated(f"{self.what}: a string has no NUL at its end", offset=start)
        self.offset = start + size + 1
        return data[:size]

    def expect_end(self) -> None:
        """
        Check that nothing is left.

        Raises:
            FormatError: bytes follow the last field.
        """
        if self.remaining:
            raise FormatError(
                f"{self.what}: {self.remaining} bytes after the last field", offset=self.offset
            )

    def _advance(self, size: int) -> int:
        """Move past *size* bytes and return where they begin."""
        start = self.offset
        end = start + size
        if end > self._end:
            raise Truncated(
                f"{self.what}: {size} bytes wanted, {self._end - start} left", offset=start
            )
        self.offset = end
        return start
