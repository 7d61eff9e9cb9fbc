"""
Numbers out of staged rows into the bytes of one column: a kernel.

All functions take the staged bytes, the places of one image, how many columns a row has, which one
is meant and how many rows there are (`RowStage`); what is NULL or absent stays zero. `out` is as
large as it must be and zeroed. Runs as plain Python, too; `number_values.pxd` gives it C types.
Source: dump-protocol 4.10; the values of every type as MariaDB 10.11 writes them.
"""

from __future__ import annotations

from typing import Final

# Digits that each byte count of a decimal's group has, and bytes of so many digits.
_GROUP_DIGITS: Final = 9


def take_validity(places: memoryview, width: int, column: int, rows: int, out: memoryview) -> int:
    """Set the bit of every row that has a value; return how many have none."""
    nulls = 0
    for row in range(rows):
        if places[row * width + column] >= 0:
            out[row >> 3] |= 1 << (row & 7)
        else:
            nulls += 1
    return nulls


def take_presence(places: memoryview, width: int, rows: int, size: int, out: memoryview) -> None:
    """Set in the *size* bytes of each row the bits of the columns that its image has."""
    for row in range(rows):
        for column in range(width):
            if places[row * width + column] != -2:
                out[row * size + (column >> 3)] |= 1 << (column & 7)


def take_integers(
    data: memoryview,
    places: memoryview,
    width: int,
    column: int,
    rows: int,
    size: int,
    signed: bool,
    out_size: int,
    out: memoryview,
) -> None:
    """Copy little-endian integers of *size* bytes into wider ones of *out_size*."""
    at = 0
    for row in range(rows):
        place = places[row * width + column]
        if place >= 0:
            for index in range(size):
                out[at + index] = data[place + index]
            if signed and data[place + size - 1] & 0x80:
                for index in range(size, out_size):
                    out[at + index] = 0xFF
        at += out_size


def take_big_endian(
    data: memoryview,
    places: memoryview,
    width: int,
    column: int,
    rows: int,
    size: int,
    out_size: int,
    out: memoryview,
) -> None:
    """Copy big-endian integers without sign (BIT) into little-endian ones of *out_size* bytes."""
    at = 0
    for row in range(rows):
        place = places[row * width + column]
        if place >= 0:
            for index in range(size):
                out[at + index] = data[place + size - 1 - index]
        at += out_size


def take_booleans(
    data: memoryview, places: memoryview, width: int, column: int, rows: int, out: memoryview
) -> None:
    """Set the bit of every row whose byte is not 0 (BIT of one bit)."""
    for row in range(rows):
        place = places[row * width + column]
        if place >= 0 and data[place]:
            out[row >> 3] |= 1 << (row & 7)


def take_years(
    data: memoryview, places: memoryview, width: int, column: int, rows: int, out: memoryview
) -> None:
    """Write years as 16-bit integers: 1901 to 2155, and 0."""
    for row in range(rows):
        place = places[row * width + column]
        if place >= 0 and data[place]:
            year = 1900 + data[place]
            out[2 * row] = year & 0xFF
            out[2 * row + 1] = year >> 8


def take_decimals(
    data: memoryview,
    places: memoryview,
    width: int,
    column: int,
    rows: int,
    digits: int,
    scale: int,
    out: memoryview,
) -> int:
    """
    Write decimals of up to 38 digits as 128-bit integers; return the first damaged row, or -1.

    Four limbs of 32 bits take group after group, so that no step needs more than 64 bits.
    """
    for row in range(rows):
        place = places[row * width + column]
        if place < 0:
            continue
        flip = 0 if data[place] & 0x80 else 0xFF
        low = second = third = high = 0
        at = place
        left = (digits - scale) % 9
        groups = (left != 0) + (digits - scale) // 9 + (scale + 8) // 9
        for group in range(groups):
            count = 9
            if group == 0 and left:
                count = left
            elif group == groups - 1 and scale % 9:
                count = scale % 9
            size = (count + 1) // 2 if count < 7 else 4
            value = 0
            for index in range(size):
                byte = data[at + index] ^ flip
                if at + index == place:
                    byte ^= 0x80
                value = value << 8 | byte
            at += size
            factor = 1
            for _ in range(count):
                factor *= 10
            if value >= factor:
                return row
            low = low * factor + value
            second = second * factor + (low >> 32)
            third = third * factor + (second >> 32)
            high = high * factor + (third >> 32)
            low &= 4294967295
            second &= 4294967295
            third &= 4294967295
            high &= 4294967295
        if flip:
            low = (low ^ 4294967295) + 1
            second = (second ^ 4294967295) + (low >> 32)
            third = (third ^ 4294967295) + (second >> 32)
            high = (high ^ 4294967295) + (third >> 32)
        for index in range(4):
            out[16 * row + index] = low >> 8 * index & 0xFF
            out[16 * row + 4 + index] = second >> 8 * index & 0xFF
            out[16 * row + 8 + index] = third >> 8 * index & 0xFF
            out[16 * row + 12 + index] = high >> 8 * index & 0xFF
    return -1


def take_decimal_texts(
    data: memoryview,
    places: memoryview,
    width: int,
    column: int,
    rows: int,
    digits: int,
    scale: int,
    offsets: memoryview,
    out: memoryview,
) -> int:
    """
    Write decimals as SELECT shows them, with *offsets*; return the first damaged row minus 1.

    Returns:
        The bytes written, or -1 - row of a damaged one. *out* has 3 bytes a row more than digits.
    """
    end = 0
    for row in range(rows):
        offsets[row] = end
        place = places[row * width + column]
        if place < 0:
            continue
        flip = 0 if data[place] & 0x80 else 0xFF
        if flip:
            out[end] = 45  # -
            end += 1
        at = place
        left = (digits - scale) % 9
        groups = (left != 0) + (digits - scale) // 9 + (scale + 8) // 9
        whole = groups - (scale + 8) // 9
        leading = True
        for group in range(groups):
            count = 9
            if group == 0 and left:
                count = left
            elif group == groups - 1 and scale % 9:
                count = scale % 9
            size = (count + 1) // 2 if count < 7 else 4
            value = 0
            for index in range(size):
                byte = data[at + index] ^ flip
                if at + index == place:
                    byte ^= 0x80
                value = value << 8 | byte
            at += size
            factor = 1
            for _ in range(count):
                factor *= 10
            if value >= factor:
                return -1 - row
            if group == whole:
                if leading:
                    out[end] = 48  # 0
                    end += 1
                    leading = False
                out[end] = 46  # .
                end += 1
            for _ in range(count):
                factor //= 10
                digit = value // factor % 10
                if digit or not leading:
                    out[end] = 48 + digit
                    end += 1
                    leading = False
        if leading:
            out[end] = 48
            end += 1
    offsets[rows] = end
    return end
