"""Time zones as sessions name them: the machine's, or hours and minutes from UTC."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Final

_OFFSET: Final = re.compile(r"([+-])([0-9]{1,2}):([0-5]?[0-9])")
_OFFSET_MAX: Final = timedelta(hours=13)  # MariaDB 10.11's
_OFFSET_MIN: Final = -timedelta(hours=12, minutes=59)


def time_zone_of(name: str) -> tzinfo | None:
    """
    Return a time zone, None for the machine's.

    Raises:
        ValueError: it is none, or has a name: as where MariaDB's tables of zones are empty.
    """
    if name.upper() == "SYSTEM":
        return None
    found = _OFFSET.fullmatch(name)
    if found is None:
        raise ValueError(name)
    sign, hours, minutes = found.groups()
    offset = timedelta(hours=int(hours), minutes=int(minutes)) * (-1 if sign == "-" else 1)
    if not _OFFSET_MIN <= offset <= _OFFSET_MAX:
        raise ValueError(name)
    return timezone(offset)


def session_zone_of(name: str) -> tzinfo | None:
    """Return what `time_zone` stands for: as above, and UTC, which needs no table."""
    return UTC if name.upper() == "UTC" else time_zone_of(name)


def local_time(seconds: float, zone: tzinfo | None = None) -> datetime:
    """Return a moment in *zone*, None: the machine's, to the second."""
    return datetime.fromtimestamp(int(seconds), zone).replace(tzinfo=None)


def seconds_of(moment: datetime, zone: tzinfo | None) -> float:
    """Return when it is or was *moment* in *zone*, None: the machine's, in seconds since 1970."""
    try:
        return moment.replace(tzinfo=zone).timestamp()
    except (ValueError, OverflowError):  # the machine's calendar ends before: hours do not matter
        return moment.replace(tzinfo=UTC).timestamp()
