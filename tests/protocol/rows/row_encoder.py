"""
An encoder of table maps and rows events, written from the format alone and for tests only.

A column is a `Spec`: its type byte and metadata, how a value becomes bytes, and what decoding must
give. `Spec`s share nothing with the decoder.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, NamedTuple

TABLE_NUMBER = 77
TABLE_MAP, WRITE, UPDATE, DELETE = 19, 23, 24, 25
DIGIT_BYTES = (0, 1, 1, 2, 2, 3, 3, 4, 4, 4)
COMPRESSED_OFFSET = 143  # of the types of compressed events


class Spec(NamedTuple):
    """A column: `encode` makes the bytes of a value that is not NULL."""

    code: int
    metadata: bytes
    encode: Callable[[Any], bytes]
    unsigned: bool | None = None  # of numbers
    collation: int | None = None  # of strings, ENUM and SET
    labels: tuple[bytes, ...] = ()


def integer(size: int, *, unsigned: bool = False) -> Spec:
    code = {1: 1, 2: 2, 3: 9, 4: 3, 8: 8}[size]
    return Spec(
        code, b"", lambda value: value.to_bytes(size, "little", signed=not unsigned), unsigned
    )


def real(size: int) -> Spec:
    return Spec(
        4 if size == 4 else 5,
        bytes([size]),
        lambda value: struct.pack("<f" if size == 4 else "<d", value),
        unsigned=False,
    )


def decimal(digits: int, scale: int) -> Spec:
    return Spec(
        246, bytes([digits, scale]), lambda value: decimal_bytes(value, digits, scale), False
    )


def decimal_bytes(value: Decimal, digits: int, scale: int) -> bytes:
    sign, number, exponent = value.as_tuple()
    assert exponent == -scale
    text = "".join(map(str, number)).zfill(digits)
    whole, fraction = text[: digits - scale], text[digits - scale :]
    groups = [whole[: len(whole) % 9]]
    groups += [whole[at : at + 9] for at in range(len(whole) % 9, len(whole), 9)]
    groups += [fraction[at : at + 9] for at in range(0, len(fraction), 9)]
    out = bytearray(
        b"".join(int(group).to_bytes(DIGIT_BYTES[len(group)], "big") for group in groups if group)
    )
    out[0] ^= 0x80
    if sign:
        out = bytearray(byte ^ 0xFF for byte in out)
    return bytes(out)


def bits(count: int) -> Spec:
    return Spec(
        16,
        bytes([count % 8, count // 8]),
        lambda value: value.to_bytes((count + 7) // 8, "big"),
    )


def year() -> Spec:
    return Spec(13, b"", lambda value: bytes([value - 1900 if value else 0]), unsigned=True)


def fraction_bytes(microsecond: int, digits: int) -> bytes:
    size = (digits + 1) // 2
    unit = {0: 1_000_000, 1: 10_000, 2: 100, 3: 1}[size]
    return (microsecond // unit).to_bytes(size, "big")


def date_bytes(year: int, month: int, day: int) -> bytes:
    return (day | month << 5 | year << 9).to_bytes(3, "little")


def a_date() -> Spec:
    return Spec(10, b"", lambda value: date_bytes(value.year, value.month, value.day))


def datetime_bytes(fields: Sequence[int], digits: int) -> bytes:
    year, month, day, hour, minute, second, microsecond = fields
    whole = ((year * 13 + month) << 5 | day) << 17 | hour << 12 | minute << 6 | second
    return (whole + (1 << 39)).to_bytes(5, "big") + fraction_bytes(microsecond, digits)


def a_datetime(digits: int) -> Spec:
    def encode(value: datetime) -> bytes:
        return datetime_bytes((*value.timetuple()[:6], value.microsecond), digits)

    return Spec(18, bytes([digits]), encode)


def a_timestamp(digits: int) -> Spec:
    def encode(value: timedelta) -> bytes:
        seconds, rest = divmod(value, timedelta(seconds=1))
        return seconds.to_bytes(4, "big") + fraction_bytes(rest.microseconds, digits)

    return Spec(17, bytes([digits]), encode)


def a_time(digits: int) -> Spec:
    def encode(value: timedelta) -> bytes:
        size = (digits + 1) // 2
        seconds, rest = divmod(abs(value), timedelta(seconds=1))
        minutes, second = divmod(seconds, 60)
        hour, minute = divmod(minutes, 60)
        packed = int.from_bytes(
            (hour << 12 | minute << 6 | second).to_bytes(4, "big")
            + fraction_bytes(rest.microseconds, digits),
            "big",
        )
        half = 1 << 8 * (3 + size) - 1
        return (half - packed if value < timedelta() else half + packed).to_bytes(3 + size, "big")

    return Spec(19, bytes([digits]), encode)


def varchar(length: int, collation: int = 45) -> Spec:
    size = 1 if length < 256 else 2
    return Spec(
        15,
        struct.pack("<H", length),
        lambda value: len(value).to_bytes(size, "little") + value,
        collation=collation,
    )


def char(length: int, collation: int = 45) -> Spec:
    size = 1 if length < 256 else 2
    pad = b"\0" if collation == 63 else b" "
    return Spec(
        254,
        bytes([0xFE ^ (length >> 8 & 3) << 4, length & 0xFF]),
        lambda value: len(value.rstrip(pad)).to_bytes(size, "little") + value.rstrip(pad),
        collation=collation,
    )


def blob(size: int, collation: int = 63) -> Spec:
    return Spec(
        252,
        bytes([size]),
        lambda value: len(value).to_bytes(size, "little") + value,
        collation=collation,
    )


def compressed_blob(size: int, collation: int = 63, *, wrap: bool = True) -> Spec:
    def encode(value: bytes) -> bytes:
        body = b""
        if value:
            length = len(value).to_bytes(2, "big")
            deflater = zlib.compressobj(wbits=15 if wrap else -15)
            head = bytes([8 << 4 | (0 if wrap else 8) | 2])
            body = head + length + deflater.compress(value) + deflater.flush()
        return len(body).to_bytes(size, "little") + body

    return Spec(140, bytes([size]), encode, collation=collation)


def enum(*labels: str, collation: int = 45) -> Spec:
    size = 1 if len(labels) < 256 else 2
    return Spec(
        254,
        bytes([247, size]),
        lambda value: (labels.index(value) + 1 if value else 0).to_bytes(size, "little"),
        collation=collation,
        labels=tuple(label.encode() for label in labels),
    )


def a_set(*labels: str, collation: int = 45) -> Spec:
    size = next(size for size in (1, 2, 3, 4, 8) if len(labels) <= 8 * size)

    def encode(value: Sequence[str]) -> bytes:
        return sum(1 << labels.index(label) for label in value).to_bytes(size, "little")

    return Spec(
        254,
        bytes([248, size]),
        encode,
        collation=collation,
        labels=tuple(label.encode() for label in labels),
    )


def lenenc(value: int) -> bytes:
    return bytes([value]) if value < 251 else b"\xfc" + struct.pack("<H", value)


def lestr(data: bytes) -> bytes:
    return lenenc(len(data)) + data


def event(code: int, body: bytes) -> bytes:
    return struct.pack("<IBIIIH", 1_700_000_000, code, 1, 19 + len(body), 0, 0) + body


def bit_bytes(flags: Sequence[bool]) -> bytes:
    out = bytearray((len(flags) + 7) // 8)
    for index, flag in enumerate(flags):
        out[index // 8] |= flag << index % 8
    return bytes(out)


def high_bits(flags: Sequence[bool]) -> bytes:
    return bytes(
        int("".join("01"[flag] for flag in flags[at : at + 8]).ljust(8, "0"), 2)
        for at in range(0, len(flags), 8)
    )


def table_map(
    columns: Sequence[tuple[str, Spec]], *, metadata: bool = True, key: Sequence[int] = ()
) -> bytes:
    """Return a table map event of `d.t`."""
    specs = [spec for _, spec in columns]
    joined = b"".join(spec.metadata for spec in specs)
    body = struct.pack("<IHH", TABLE_NUMBER, 0, 1) + b"\x01d\0\x01t\0" + lenenc(len(specs))
    body += bytes(spec.code for spec in specs) + lestr(joined)
    body += bit_bytes([True] * len(specs))
    if metadata:
        strings = [spec for spec in specs if spec.collation is not None and not spec.labels]
        labelled = [spec for spec in specs if spec.labels]
        fields = {
            1: high_bits([spec.unsigned for spec in specs if spec.unsigned is not None]),
            3: b"".join(lenenc(spec.collation or 0) for spec in strings),
            11: b"".join(lenenc(spec.collation or 0) for spec in labelled),
            4: b"".join(lestr(name.encode()) for name, _ in columns),
            5: labels_of(labelled, 248),
            6: labels_of(labelled, 247),
            8: b"".join(map(lenenc, key)),
        }
        body += b"".join(bytes([code]) + lestr(data) for code, data in fields.items() if data)
    return event(TABLE_MAP, body)


def labels_of(specs: Sequence[Spec], code: int) -> bytes:
    return b"".join(
        lenenc(len(spec.labels)) + b"".join(map(lestr, spec.labels))
        for spec in specs
        if spec.metadata[0] == code
    )


def image(specs: Sequence[Spec], row: Sequence[Any], present: Sequence[bool]) -> bytes:
    values = [
        (spec, value) for spec, value, there in zip(specs, row, present, strict=True) if there
    ]
    return bit_bytes([value is None for _, value in values]) + b"".join(
        spec.encode(value) for spec, value in values if value is not None
    )


def rows_event(
    code: int,
    specs: Sequence[Spec],
    rows: Sequence[Sequence[Sequence[Any]]],
    present: Sequence[Sequence[bool]] | None = None,
    *,
    compressed: bool = False,
) -> bytes:
    """
    Return a rows event.

    Args:
        code: WRITE, UPDATE or DELETE.
        rows: of each row its images, two in an UPDATE.
        present: of each image which columns it has; None is all.
    """
    images = 2 if code == UPDATE else 1
    present = present or [[True] * len(specs)] * images
    head = struct.pack("<IHH", TABLE_NUMBER, 0, 1) + lenenc(len(specs))
    head += b"".join(bit_bytes(flags) for flags in present)
    body = b"".join(
        image(specs, row, flags)
        for row_images in rows
        for row, flags in zip(row_images, present, strict=True)
    )
    if compressed:
        body = b"\x84" + struct.pack(">I", len(body)) + zlib.compress(body)
        code += COMPRESSED_OFFSET
    return event(code, head + body)
