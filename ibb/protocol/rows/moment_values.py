"""
Dates and times out of staged rows into the integers of one column: a kernel.

A date can be one that no calendar has (0000-00-00, 2024-02-00, 2024-02-31, the year 0): such values
are left out, and counted, and their rows marked; `take_moment_texts` writes them as SELECT does.
Bytes that no server writes (month 14, 75 seconds) are damage. The arguments that all functions
share are those of `number_values`. Runs as plain Python, too; `moment_values.pxd` gives it C types.
Source: dump-protocol 4.10; the values of every type as MariaDB 10.11 writes them.
"""

from __future__ import annotations

from typing import Final

# What `_read_moment` reads: how the bytes of a value are to be understood.
DATE: Final = 1  # 3 bytes: day, month << 5, year << 9
DATETIME: Final = 2  # 5 bytes and the fraction's
TIMESTAMP: Final = 3  # 4 bytes and the fraction's
TIME: Final = 4  # 3 bytes and the fraction's
OLD_DATETIME: Final = 5  # 8 bytes: the number YYYYMMDDhhmmss
OLD_TIMESTAMP: Final = 6  # 4 bytes, little-endian
OLD_TIME: Final = 7  # 3 bytes with sign: the number hhmmss

# What `_read_moment` says of a value.
IS_FINE: Final = 0
IS_NO_DATE: Final = 1
IS_DAMAGED: Final = 2

# Places in the fields that it fills.
NEGATIVE: Final = 0
YEAR: Final = 1
MONTH: Final = 2
DAY: Final = 3
HOUR: Final = 4
MINUTE: Final = 5
SECOND: Final = 6
MICROSECOND: Final = 7
EPOCH: Final = 8  # days of a date, microseconds of all others
FIELDS: Final = 9


def _days_from_civil(year: int, month: int, day: int) -> int:
    """Return the days from 1970-01-01 to a date of the Gregorian calendar of any year."""
    if month <= 2:
        year -= 1
    era = year // 400
    of_era = year - era * 400
    shifted = month - 3 if month > 2 else month + 9
    of_year = (153 * shifted + 2) // 5 + day - 1
    return era * 146097 + of_era * 365 + of_era // 4 - of_era // 100 + of_year - 719468


def _month_days(year: int, month: int) -> int:
    """Return the days of a month."""
    if month == 2:
        return 29 if year % 4 == 0 and (year % 100 != 0 or year % 400 == 0) else 28
    return 30 if month in (4, 6, 9, 11) else 31


def _read_moment(data: memoryview, place: int, kind: int, extra: int, fields: memoryview) -> int:
    """
    Read one value into *fields*; return IS_FINE, IS_NO_DATE or IS_DAMAGED.

    *kind* is DATE ... OLD_TIME, *extra* the bytes of the fraction.
    """
    for index in range(9):
        fields[index] = 0
    if kind == 1:
        value = data[place] | data[place + 1] << 8 | data[place + 2] << 16
        fields[3], fields[2], fields[1] = value & 31, value >> 5 & 15, value >> 9
        return _check_date(fields, True)
    whole = 0
    if kind >= 5:
        size = 8 if kind == 5 else 4 if kind == 6 else 3
        if kind == 5 and data[place + 7] & 0x80:
            return 2
        for index in range(size):
            byte = data[place + size - 1 - index]
            whole = whole << 8 | byte
        if kind == 6:
            fields[8] = whole * 1000000
            return 0 if whole else 1
        if kind == 7:
            if whole & 0x800000:
                whole = 0x1000000 - whole
                fields[0] = 1
            fields[4], fields[5], fields[6] = whole // 10000, whole // 100 % 100, whole % 100
            return _check_time(fields)
        fields[6], fields[5], fields[4] = whole % 100, whole // 100 % 100, whole // 10000 % 100
        whole //= 1000000
        fields[3], fields[2], fields[1] = whole % 100, whole // 100 % 100, whole // 10000
        return _check_date(fields, False)
    size = (5 if kind == 2 else 4 if kind == 3 else 3) + extra
    if kind == 2 and not data[place] & 0x80:
        return 2
    for index in range(size):
        byte = data[place + index]
        if index == 0 and kind == 2:
            byte &= 0x7F  # the sign, so that 63 bits are enough
        whole = whole << 8 | byte
    if kind == 4:
        half = 1
        half <<= 8 * size - 1
        whole -= half
        if whole < 0:
            whole = -whole
            fields[0] = 1
    unit = 1
    unit <<= 8 * extra
    fraction = whole % unit
    whole //= unit
    fraction *= 10000 if extra == 1 else 100 if extra == 2 else 1
    fields[7] = fraction
    if fraction > 999999:
        return 2
    if kind == 3:
        fields[8] = whole * 1000000 + fraction
        return 0 if fields[8] else 1
    fields[4], fields[5], fields[6] = whole >> 12 & 31, whole >> 6 & 63, whole & 63
    if kind == 4:
        fields[4] = whole >> 12
        return _check_time(fields)
    whole >>= 17
    fields[3] = whole & 31
    whole >>= 5
    fields[2], fields[1] = whole % 13, whole // 13
    return _check_date(fields, False)


def _check_time(fields: memoryview) -> int:
    """Fill in EPOCH from the time; a damaged one is more than MariaDB's most."""
    if fields[4] > 838 or fields[5] > 59 or fields[6] > 59:
        return 2
    epoch = ((fields[4] * 60 + fields[5]) * 60 + fields[6]) * 1000000 + fields[7]
    fields[8] = -epoch if fields[0] else epoch
    return 0


def _check_date(fields: memoryview, is_date: bool) -> int:
    """Fill in EPOCH from the date, and the time if there is one, if the calendar has it."""
    year, month, day = fields[1], fields[2], fields[3]
    if year > 9999 or month > 12 or day > 31:
        return 2
    if fields[4] > 23 or fields[5] > 59 or fields[6] > 59:
        return 2
    if not year or not month or not day or day > _month_days(year, month):
        return 1
    fields[8] = _days_from_civil(year, month, day)
    if not is_date:
        time = (fields[4] * 60 + fields[5]) * 60 + fields[6]
        fields[8] = (fields[8] * 86400 + time) * 1000000 + fields[7]
    return 0


def take_moments(
    data: memoryview,
    places: memoryview,
    width: int,
    column: int,
    rows: int,
    kind: int,
    extra: int,
    out_size: int,
    fields: memoryview,
    out: memoryview,
    marks: memoryview,
) -> int:
    """
    Write days (DATE, 4 bytes) or microseconds (8 bytes); clear the bit of what is no date.

    *kind* is DATE ... OLD_TIME, *extra* the bytes of the fraction, *fields* are `FIELDS` 64-bit
    integers to work with, *marks* the bits of rows with a value.

    Returns:
        How many are no date, or -1 - row of a damaged one.
    """
    left_out = 0
    for row in range(rows):
        place = places[row * width + column]
        if place < 0:
            continue
        state = _read_moment(data, place, kind, extra, fields)
        if state == 2:
            return -1 - row
        if state == 1:
            marks[row >> 3] &= 0xFF ^ 1 << (row & 7)
            left_out += 1
            continue
        value = fields[8]
        for index in range(out_size):
            out[row * out_size + index] = value >> 8 * index & 0xFF
    return left_out


def take_moment_texts(
    data: memoryview,
    places: memoryview,
    width: int,
    column: int,
    rows: int,
    kind: int,
    extra: int,
    digits: int,
    fields: memoryview,
    offsets: memoryview,
    out: memoryview,
) -> int:
    """
    Write values as SELECT does: 0000-00-00, 2024-02-31 10:00:00.50, -838:59:59; timestamps in UTC.

    *digits* are those of the fraction of a second; *out* has 27 bytes a row.

    Returns:
        The bytes written, or -1 - row of a damaged one.
    """
    end = 0
    for row in range(rows):
        offsets[row] = end
        place = places[row * width + column]
        if place < 0:
            continue
        state = _read_moment(data, place, kind, extra, fields)
        if state == 2:
            return -1 - row
        if kind in (3, 6) and not state:
            _civil_from_epoch(fields)
        if kind in (4, 7):
            if fields[0]:
                out[end] = 45  # -
                end += 1
            end = _write_digits(out, end, fields[4], 3 if fields[4] > 99 else 2)
        else:
            end = _write_digits(out, end, fields[1], 4)
            out[end] = 45
            end = _write_digits(out, end + 1, fields[2], 2)
            out[end] = 45
            end = _write_digits(out, end + 1, fields[3], 2)
            if kind == 1:
                continue
            out[end] = 32
            end = _write_digits(out, end + 1, fields[4], 2)
        out[end] = 58  # :
        end = _write_digits(out, end + 1, fields[5], 2)
        out[end] = 58
        end = _write_digits(out, end + 1, fields[6], 2)
        if digits:
            out[end] = 46  # .
            _write_digits(out, end + 1, fields[7], 6)
            end += 1 + digits
    offsets[rows] = end
    return end


def _write_digits(out: memoryview, at: int, value: int, count: int) -> int:
    """Write *value* in *count* digits; return where they end."""
    for index in range(count):
        out[at + count - 1 - index] = 48 + value % 10
        value //= 10
    return at + count


def _civil_from_epoch(fields: memoryview) -> None:
    """Fill in date and time from EPOCH, microseconds from 1970 on."""
    seconds = fields[8] // 1000000
    days = seconds // 86400 + 719468
    seconds %= 86400
    era = days // 146097
    of_era = days % 146097
    year = (of_era - of_era // 1460 + of_era // 36524 - of_era // 146096) // 365
    of_year = of_era - (365 * year + year // 4 - year // 100)
    shifted = (5 * of_year + 2) // 153
    fields[3] = of_year - (153 * shifted + 2) // 5 + 1
    fields[2] = shifted + 3 if shifted < 10 else shifted - 9
    fields[1] = year + era * 400 + (1 if fields[2] <= 2 else 0)
    fields[4], fields[5], fields[6] = seconds // 3600, seconds // 60 % 60, seconds % 60
