"""
Strings out of staged rows into the offsets and bytes of one column: a kernel.

The arguments that all functions share are those of `number_values`. *offsets* has an entry more
than there are rows. Runs as plain Python, too; `string_values.pxd` gives it C types.
Source: dump-protocol 4.10; the values of every type as MariaDB 10.11 writes them.
"""

from __future__ import annotations


def count_bytes(
    data: memoryview,
    places: memoryview,
    width: int,
    column: int,
    rows: int,
    prefix: int,
    pad: int,
) -> int:
    """
    Return the bytes of all values of a column.

    *prefix* are the bytes of the length in front of a value, *pad* is the least that a value has
    (BINARY comes without the zeros at its end).
    """
    total = 0
    for row in range(rows):
        place = places[row * width + column]
        if place >= 0:
            length = _read_length(data, place, prefix)
            total += max(length, pad)
    return total


def _read_length(data: memoryview, place: int, prefix: int) -> int:
    """Return the little-endian integer of *prefix* bytes at *place*."""
    value = 0
    for index in range(prefix):
        byte = data[place + prefix - 1 - index]
        value = value << 8 | byte
    return value


def take_strings(
    data: memoryview,
    places: memoryview,
    width: int,
    column: int,
    rows: int,
    prefix: int,
    pad: int,
    offsets: memoryview,
    out: memoryview,
) -> bool:
    """Copy strings one behind the other; return whether all bytes are ASCII."""
    end = 0
    seen = 0
    for row in range(rows):
        offsets[row] = end
        place = places[row * width + column]
        if place < 0:
            continue
        length = _read_length(data, place, prefix)
        place += prefix
        for index in range(length):
            byte = data[place + index]
            seen |= byte
            out[end + index] = byte
        end += max(length, pad)
    offsets[rows] = end
    return seen < 0x80


def count_mapped_bytes(
    data: memoryview,
    places: memoryview,
    width: int,
    column: int,
    rows: int,
    prefix: int,
    table: memoryview,
) -> int:
    """
    Return the bytes that a column of a one-byte character set takes in UTF-8.

    *table* has of each byte four: how many bytes of UTF-8, and these.

    Returns:
        The bytes; -1 - row if that row has a byte that is no character.
    """
    total = 0
    for row in range(rows):
        place = places[row * width + column]
        if place < 0:
            continue
        length = _read_length(data, place, prefix)
        place += prefix
        for index in range(length):
            size = table[4 * data[place + index]]
            if size == 0:
                return -1 - row
            total += size
    return total


def take_mapped(
    data: memoryview,
    places: memoryview,
    width: int,
    column: int,
    rows: int,
    prefix: int,
    table: memoryview,
    offsets: memoryview,
    out: memoryview,
) -> None:
    """Write strings of a one-byte character set as UTF-8; see `count_mapped_bytes`."""
    end = 0
    for row in range(rows):
        offsets[row] = end
        place = places[row * width + column]
        if place < 0:
            continue
        length = _read_length(data, place, prefix)
        place += prefix
        for index in range(length):
            entry = 4 * data[place + index]
            size = table[entry]
            out[end] = table[entry + 1]
            if size > 1:
                out[end + 1] = table[entry + 2]
            if size > 2:
                out[end + 2] = table[entry + 3]
            end += size
    offsets[rows] = end


def take_labels(
    data: memoryview,
    places: memoryview,
    width: int,
    column: int,
    rows: int,
    size: int,
    is_set: bool,
    label_offsets: memoryview,
    labels: memoryview,
    offsets: memoryview,
    out: memoryview,
) -> int:
    """
    Write the words of ENUM and SET: of ENUM's number 0 none, of SET's bits with commas between.

    *size* are the bytes of a value, *is_set* says that it has a bit for each label and is no number
    from 1; *label_offsets* are where each label begins in *labels*, and where the last one ends. An
    *out* of no bytes is not written: the total is counted.

    Returns:
        The bytes; -1 - row if that row has a value without a label.
    """
    end = 0
    count = len(label_offsets) - 1
    writing = len(out) > 0
    for row in range(rows):
        if writing:
            offsets[row] = end
        place = places[row * width + column]
        if place < 0:
            continue
        start = end
        known = min(count, 8 * size) if is_set else 1
        for bit in range(8 * size if is_set else 1):
            if is_set:
                if not data[place + (bit >> 3)] >> (bit & 7) & 1:
                    continue
                if bit >= known:
                    return -1 - row
                label = bit
            else:
                label = _read_length(data, place, size) - 1
                if label < 0:
                    continue
                if label >= count:
                    return -1 - row
            if end > start:
                if writing:
                    out[end] = 44  # ,
                end += 1
            begin = label_offsets[label]
            length = label_offsets[label + 1] - begin
            if writing:
                for index in range(length):
                    out[end + index] = labels[begin + index]
            end += length
    if writing:
        offsets[rows] = end
    return end
