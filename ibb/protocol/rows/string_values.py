"""
Strings out of staged rows into the offsets and bytes of one column: a kernel.

The arguments that all functions share are those of `number_values`. *offsets* has an entry more
than there are rows. Runs as plain Python, too; `string_values.pxd` gives it C types.
Source: dump-protocol 4.10; the values of every type as MariaDB 10.11 writes them.
"""

from __future__ import annotations

try:
    import cython
except ImportError:  # nothing needs it to run
    from ibb import uncompiled as cython

_high_bits = 0x8080808080808080  # of eight bytes


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
    end, is_ascii = 0, True
    source = cython.address(data[0]) if cython.compiled else data
    target = cython.address(out[0]) if cython.compiled else out
    for row in range(rows):
        offsets[row] = end
        place = places[row * width + column]
        if place < 0:
            continue
        length = _read_length(data, place, prefix)
        place += prefix
        _copy(target, end, source, place, length)
        is_ascii = is_ascii and _is_ascii(source, place, length)
        end += max(length, pad)
    offsets[rows] = end
    return is_ascii


def _copy(out: memoryview, to: int, data: memoryview, place: int, length: int) -> None:
    if cython.compiled:
        memcpy(cython.address(out[to]), cython.address(data[place]), length)  # noqa: F821
    else:
        out[to : to + length] = data[place : place + length]


def _is_ascii(data: memoryview, place: int, length: int) -> bool:
    """Tell whether some bytes are all ASCII."""
    while length >= 8:
        if not _are_eight_ascii(data, place):
            return False
        place += 8
        length -= 8
    seen = 0
    for index in range(length):
        seen |= data[place + index]
    return seen < 0x80


def _are_eight_ascii(data: memoryview, place: int) -> bool:
    word = 0
    if cython.compiled:
        memcpy(cython.address(word), cython.address(data[place]), 8)  # noqa: F821
        return (word & _high_bits) == 0
    return bytes(data[place : place + 8]).isascii()


def count_mapped_bytes(
    data: memoryview,
    places: memoryview,
    width: int,
    column: int,
    rows: int,
    prefix: int,
    table: memoryview,
    has_ascii: bool,
) -> int:
    """
    Return the bytes that a column of a one-byte character set takes in UTF-8.

    *table* has of each byte four: its UTF-8, and as the last how many bytes that has; *has_ascii*
    says that all of ASCII means in this character set what it means in UTF-8.

    Returns:
        The bytes; -1 - row if that row has a byte that is no character.
    """
    total = 0
    entries = cython.address(table[0]) if cython.compiled else table
    source = cython.address(data[0]) if cython.compiled else data
    for row in range(rows):
        place = places[row * width + column]
        if place < 0:
            continue
        length = _read_length(data, place, prefix)
        place += prefix
        index = 0
        while index < length:
            stop = min(index + 8, length)
            if has_ascii and index + 8 <= length and _are_eight_ascii(source, place + index):
                total += 8
                index += 8
                continue
            while index < stop:
                size = entries[4 * source[place + index] + 3]
                if size == 0:
                    return -1 - row
                total += size
                index += 1
    return total


def take_mapped(
    data: memoryview,
    places: memoryview,
    width: int,
    column: int,
    rows: int,
    prefix: int,
    table: memoryview,
    has_ascii: bool,
    room: int,
    offsets: memoryview,
    out: memoryview,
) -> int:
    """
    Write strings of a one-byte character set as UTF-8; see `count_mapped_bytes`.

    *out* has three bytes more, which mean nothing, than *room*, or than were counted where *room*
    is -1.

    Returns:
        The bytes; -1: there is a byte that is no character, or not surely room for all.
    """
    end = 0
    source = cython.address(data[0]) if cython.compiled else data
    target = cython.address(out[0]) if cython.compiled else out
    entries = cython.address(table[0]) if cython.compiled else table
    for row in range(rows):
        offsets[row] = end
        place = places[row * width + column]
        if place < 0:
            continue
        length = _read_length(data, place, prefix)
        place += prefix
        if room >= 0 and end + 3 * length > room:
            return -1
        past, missing = place + length, 0
        while past - place >= 8:
            if has_ascii and _are_eight_ascii(source, place):
                _copy(target, end, source, place, 8)
                end += 8
            else:
                size = _take_eight(source, place, entries, target, end)
                if size < 0:
                    return -1
                end += size
            place += 8
        while place < past:
            size = _take_one(source, place, entries, target, end)
            end += size
            missing |= size - 1
            place += 1
        if missing < 0:
            return -1
    offsets[rows] = end
    return end


def _take_eight(
    source: memoryview, place: int, entries: memoryview, target: memoryview, end: int
) -> int:
    """
    Write eight bytes as UTF-8; return how long that is, less than 0 if one is no character.

    There is no branch for each, since nobody can guess what comes, and no loop: 0.58 ns a byte;
    four or two at a time, with a loop around, take 0.64 to 1.05.
    """
    past, missing = end, 0
    size = _take_one(source, place, entries, target, past)
    past += size
    missing |= size - 1
    size = _take_one(source, place + 1, entries, target, past)
    past += size
    missing |= size - 1
    size = _take_one(source, place + 2, entries, target, past)
    past += size
    missing |= size - 1
    size = _take_one(source, place + 3, entries, target, past)
    past += size
    missing |= size - 1
    size = _take_one(source, place + 4, entries, target, past)
    past += size
    missing |= size - 1
    size = _take_one(source, place + 5, entries, target, past)
    past += size
    missing |= size - 1
    size = _take_one(source, place + 6, entries, target, past)
    past += size
    missing |= size - 1
    size = _take_one(source, place + 7, entries, target, past)
    past += size
    missing |= size - 1
    return past - end if missing >= 0 else -1


def _take_one(
    source: memoryview, place: int, entries: memoryview, target: memoryview, end: int
) -> int:
    """Write one byte as UTF-8, and what means nothing behind it; return how long that is, or 0."""
    byte = source[place]
    if not cython.compiled:
        target[end : end + 4] = entries[4 * byte : 4 * byte + 4]
        return entries[4 * byte + 3]
    entry = 0
    memcpy(cython.address(entry), cython.address(entries[4 * byte]), 4)  # noqa: F821
    memcpy(cython.address(target[end]), cython.address(entry), 4)  # noqa: F821
    return entry >> 24  # one load for both, on little-endian machines, as all buffers here are


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
