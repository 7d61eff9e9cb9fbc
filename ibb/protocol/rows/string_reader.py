"""
Strings of staged rows: bytes, texts of any character set, ENUM and SET, compressed ones, and
the types that come as bytes and are shown as text.

Texts of UTF-8 and of one-byte character sets, ENUM and SET are written by kernels; what is left is
read value by value.
"""

from __future__ import annotations

import zlib
from array import array
from ipaddress import IPv4Address, IPv6Address
from typing import TYPE_CHECKING, Final

from ibb.protocol.errors import FormatError

from .column import COMPRESSED, ColumnType
from .row_stage import zeros
from .string_values import count_bytes, count_mapped_bytes, take_labels, take_mapped, take_strings
from .text_encoding import UTF8, has_ascii, text_of, utf8_table
from .value_policy import BadText, ValueRefused

if TYPE_CHECKING:
    from collections.abc import Callable

    from .column_reader import Staged
    from .table_layout import ColumnLayout
    from .value_policy import ValuePolicy

COLUMN_BYTES_MAX: Final = 2**31 - 1  # what 32-bit offsets can say
VALUE_BYTES_MAX: Final = 1 << 30  # of a value that is decompressed: no packet is larger
_MUCH: Final = 1 << 20  # bytes of a batch that are not counted first, but given some room
_SPARE: Final = 1 << 16
_GROWTH_FIRST: Final = 2.0  # that few texts exceed
_ZLIB: Final = 8
_SPECIAL_BYTES: Final = {"uuid": 16, "inet6": 16, "inet4": 4}


class StringReader:
    """
    Reads the strings of one column.

    `is_slow` says that `read_one_by_one` is wanted.

    Args:
        layout: what is known of the column.
        policy: what becomes of bytes that are no characters.
        where: the column, for error texts.
        make_room: returns so many bytes to be written, whatever is in them.
    """

    def __init__(
        self,
        layout: ColumnLayout,
        policy: ValuePolicy,
        where: str,
        make_room: Callable[[int], memoryview] = zeros,
    ) -> None:
        self._make_room = make_room
        column = layout.column
        self._column = column
        self._where = where
        self._policy = policy
        self._special = layout.special
        self._charset = None if layout.charset == "binary" else layout.charset
        self._table = utf8_table(self._charset) if self._charset else None
        self._has_ascii = has_ascii(self._table or b"")
        self._growth = _GROWTH_FIRST  # bytes of UTF-8 for one, in the last batch
        is_padded = column.type is ColumnType.STRING and layout.charset == "binary"
        self._pad = _SPECIAL_BYTES.get(layout.special or "", column.length if is_padded else 0)
        self._labels = None
        if layout.labels is not None:
            self._labels = [label.encode() for label in layout.labels]
        self._is_utf8 = self._charset in UTF8
        is_other = not (self._charset is None or self._is_utf8 or self._table)
        self.is_slow = bool(self._special) or is_other or column.type in COMPRESSED

    def read(self, staged: Staged) -> tuple[memoryview, memoryview]:
        """
        Return offsets and bytes of all values.

        Raises:
            FormatError: an ENUM or SET has a value without a label.
            ValueRefused: bytes that are no characters; too many bytes for one column.
        """
        if self._labels is not None:
            return self._read_labels(staged)
        if self._table is not None:
            return self._read_mapped(staged)
        prefix = self._column.prefix
        total = self._checked(count_bytes(*staged, prefix, self._pad))
        make_room = zeros if self._pad else self._make_room  # what is padded is not written
        offsets, out = _offsets(staged.rows), make_room(total)
        is_ascii = take_strings(*staged, prefix, self._pad, offsets, out)
        if self._is_utf8 and not is_ascii and not _is_utf8(out, offsets):
            if self._policy.bad_text is BadText.ERROR:
                self._refuse_text()
            return self.read_one_by_one(staged)
        return offsets, out

    def read_one_by_one(self, staged: Staged) -> tuple[memoryview, memoryview]:
        """
        Return offsets and bytes of all values, made with an object for each.

        Raises:
            FormatError: a compressed value is damaged.
            ValueRefused: bytes that are no characters; too many bytes for one column.
        """
        prefix = self._column.prefix
        total = count_bytes(*staged, prefix, self._pad)
        offsets, out = _offsets(staged.rows), memoryview(bytearray(total))
        take_strings(*staged, prefix, self._pad, offsets, out)
        ends = array("i", [0])
        pieces = []
        end = 0
        for row in range(staged.rows):
            if staged.places[row * staged.width + staged.column] >= 0:
                piece = self._converted(bytes(out[offsets[row] : offsets[row + 1]]))
                pieces.append(piece)
                end = self._checked(end + len(piece))
            ends.append(end)
        return memoryview(ends), memoryview(b"".join(pieces))

    def _converted(self, value: bytes) -> bytes:
        if self._column.type in COMPRESSED:
            value = self._decompressed(value)
        if self._special:
            return _shown(value, self._special)
        if self._charset is None:
            return value
        errors = "strict" if self._policy.bad_text is BadText.ERROR else "replace"
        try:
            return text_of(value, self._charset, errors).encode()
        except LookupError:
            raise ValueRefused(
                f"{self._where} has the character set {self._charset}, which is unknown here"
            ) from None
        except UnicodeError:
            return self._refuse_text()

    def _decompressed(self, value: bytes) -> bytes:
        """
        Return a value of a COMPRESSED column.

        Its first byte says how: 0 not at all; else in bits 4 to 7 the method (there is one), in
        bit 3 that zlib's header was left out, and below how many bytes of length follow, which are
        big-endian. Source: what MariaDB 10.11 writes.
        """
        if not value or not value[0]:
            return value[1:]
        head = value[0]
        start = 1 + (head & 7)
        size = int.from_bytes(value[1:start], "big")
        inflater = zlib.decompressobj(-zlib.MAX_WBITS if head & 8 else zlib.MAX_WBITS)
        if head >> 4 != _ZLIB or size > VALUE_BYTES_MAX:
            raise FormatError(f"{self._where}: a compressed value begins with {value[:5].hex()}")
        try:
            found = inflater.decompress(value[start:], size + 1)
        except zlib.error as error:
            raise FormatError(f"{self._where}: a compressed value is damaged: {error}") from error
        if len(found) != size or not inflater.eof:
            raise FormatError(f"{self._where}: a compressed value does not have its {size} bytes")
        return found

    def _read_mapped(self, staged: Staged) -> tuple[memoryview, memoryview]:
        how = self._column.prefix, memoryview(self._table or b""), self._has_ascii
        size = count_bytes(*staged, self._column.prefix, 0)
        room = int(size * self._growth) + size // 64 + _SPARE
        if size >= _MUCH and room <= COLUMN_BYTES_MAX:  # it may grow as before
            offsets, out = _offsets(staged.rows), self._make_room(room + 3)
            total = take_mapped(*staged, *how, room, offsets, out)
            if total >= 0:
                self._growth = total / size
                return offsets, out[:total]
        total = count_mapped_bytes(*staged, *how)
        if total < 0:
            if self._policy.bad_text is BadText.ERROR:
                self._refuse_text()
            return self.read_one_by_one(staged)
        if size:
            self._growth = total / size
        offsets, out = _offsets(staged.rows), self._make_room(self._checked(total) + 3)
        take_mapped(*staged, *how, -1, offsets, out)
        return offsets, out[:total]

    def _read_labels(self, staged: Staged) -> tuple[memoryview, memoryview]:
        labels = self._labels or []
        is_set = self._column.type is ColumnType.SET
        ends = array("i", [0])
        for label in labels:
            ends.append(ends[-1] + len(label))
        joined = memoryview(b"".join(labels))
        what = (*staged, self._column.size, is_set, memoryview(ends), joined)
        offsets = _offsets(staged.rows)
        total = take_labels(*what, offsets, memoryview(bytearray()))
        if total < 0:
            row = -1 - total
            place = staged.places[row * staged.width + staged.column]
            value = staged.data[place : place + self._column.size].hex()
            raise FormatError(f"{self._where}: the value {value} has no label")
        out = memoryview(bytearray(self._checked(total)))
        take_labels(*what, offsets, out)
        return offsets, out

    def _checked(self, total: int) -> int:
        if total > COLUMN_BYTES_MAX:
            raise ValueRefused(
                f"{self._where}: {total} bytes in one batch; {COLUMN_BYTES_MAX} are possible: "
                "ask for smaller batches"
            )
        return total

    def _refuse_text(self) -> bytes:
        raise ValueRefused(
            f"{self._where} has bytes that are no characters of {self._charset}; let them be "
            "replaced instead"
        )


def _offsets(rows: int) -> memoryview:
    return memoryview(array("i", bytes(4 * (rows + 1))))


def _is_utf8(data: memoryview, offsets: memoryview) -> bool:
    """Return whether all values are UTF-8, each by itself."""
    try:
        str(data, "utf-8")
    except UnicodeDecodeError:
        return False
    end = len(data)
    return not any(offset < end and data[offset] & 0xC0 == 0x80 for offset in offsets)


def _shown(value: bytes, special: str) -> bytes:
    """Return the bytes of a UUID or an address as SELECT shows them."""
    if special == "uuid":
        digits = value.hex()
        parts = (digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:])
        return "-".join(parts).encode()
    if special == "inet4":
        return str(IPv4Address(value)).encode()
    address = IPv6Address(value)
    mapped = address.ipv4_mapped
    return (f"::ffff:{mapped}" if mapped else str(address)).encode()
