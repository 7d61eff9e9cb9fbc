"""Functions of time: NOW, UNIX_TIMESTAMP and their like, and what counts as a moment."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta, tzinfo
from decimal import ROUND_DOWN, Decimal
from typing import TYPE_CHECKING, Final, TypeAlias

from ibb.protocol.error_codes import TOO_BIG_PRECISION

from .time_zone import local_time, time_zone_of
from .types import MICROSECOND_DECIMALS, Kind, SqlType, Typed, as_number, as_text, quantized

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .context import Context
    from .types import SqlValue

UNIX_SECONDS_MAX: Final = (1 << 31) - 1  # as in MariaDB 10.11
_Arguments: TypeAlias = "Sequence[Typed]"
_DATETIME: Final = SqlType(Kind.DATETIME, 19)
_DATE: Final = SqlType(Kind.DATE, 10)
_TIME: Final = SqlType(Kind.TIME, 10)
_TIME_MAX: Final = timedelta(hours=838, minutes=59, seconds=59)
_TIMESTAMP_YEARS: Final = range(1969, 2039)  # in some zone
_TIMESTAMPS: Final = 1 << 31  # seconds


def moment_of(value: SqlValue) -> datetime | None:
    """Return *value* as a moment, None if it is none."""
    if isinstance(value, datetime):
        return value
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day)  # noqa: DTZ001 - SQL's have no zone
    text = as_text(value)
    if text is None:
        return None
    text = text.strip()
    if text.isdigit() and len(text) in (8, 14):
        text = f"{text[:4]}-{text[4:6]}-{text[6:8]}" + (
            f" {text[8:10]}:{text[10:12]}:{text[12:]}" if len(text) == 14 else ""
        )
    try:
        return datetime.fromisoformat(text).replace(tzinfo=None)
    except ValueError:
        return None


def _moment(context: Context, argument: Typed) -> datetime | None:
    """Return an argument as a moment; one that is none is warned of."""
    moment = moment_of(argument.value)
    if moment is None and argument.value is not None:
        text = f"Incorrect datetime value: '{as_text(argument.value)}'"
        context.diagnostics.add("Warning", 1292, text)
    return moment


def _local(context: Context) -> datetime:
    """Return when the statement began, as the session's clock shows it."""
    return local_time(context.now, context.zone())


def _digits(arguments: _Arguments, function: str) -> int:
    """Return how many digits of a second are wanted; raises SqlError 1426."""
    wanted = int(as_number(arguments[0].value) or 0) if arguments else 0
    if not 0 <= wanted <= MICROSECOND_DECIMALS:
        raise TOO_BIG_PRECISION.error(function, MICROSECOND_DECIMALS)
    return wanted


def _since(seconds: float, digits: int) -> timedelta:
    """Return the part of a moment below a second, to so many digits."""
    step = 10 ** (MICROSECOND_DECIMALS - digits)
    return timedelta(microseconds=int(seconds % 1 * 1_000_000) // step * step)


def _now(context: Context, arguments: _Arguments) -> Typed:
    digits = _digits(arguments, "current_timestamp")
    moment = _local(context) + _since(context.now, digits)
    return Typed(moment, replace(_DATETIME, decimals=digits))


def _sysdate(context: Context, arguments: _Arguments) -> Typed:
    """Return the time as it is, whatever the session takes it for."""
    digits, now = _digits(arguments, "sysdate"), context.facts.now()
    moment = local_time(now, context.zone()) + _since(now, digits)
    return Typed(moment, replace(_DATETIME, decimals=digits))


def _utc_timestamp(context: Context, arguments: _Arguments) -> Typed:
    digits = _digits(arguments, "utc_timestamp")
    moment = _utc(context) + _since(context.now, digits)
    return Typed(moment, replace(_DATETIME, decimals=digits))


def _clock(
    moment: Callable[[Context], datetime], function: str
) -> Callable[[Context, _Arguments], Typed]:
    """Return the function that tells the time of day of a moment."""

    def compute(context: Context, arguments: _Arguments) -> Typed:
        digits = _digits(arguments, function)
        time = _time_of(moment(context)) + _since(context.now, digits)
        return Typed(time, replace(_TIME, decimals=digits))

    return compute


def _utc(context: Context) -> datetime:
    return datetime.fromtimestamp(int(context.now), UTC).replace(tzinfo=None)


def _time_of(moment: datetime) -> timedelta:
    return timedelta(hours=moment.hour, minutes=moment.minute, seconds=moment.second)


def _unix_timestamp(context: Context, arguments: _Arguments) -> Typed:
    type_ = SqlType(Kind.INTEGER, 17, nullable=True)
    if not arguments:
        return Typed(int(context.now), type_)
    moment = _moment(context, arguments[0])
    seconds = None if moment is None else _unix_seconds(moment, context.zone())
    decimals = arguments[0].type.decimals if arguments[0].type.kind is Kind.DATETIME else 0
    if not decimals:
        return Typed(None if seconds is None else int(seconds), type_)
    type_ = SqlType(Kind.DECIMAL, type_.length + 1 + decimals, decimals, nullable=True)
    exact = None if seconds is None else quantized(Decimal(repr(seconds)), decimals, ROUND_DOWN)
    return Typed(exact, type_)


def _unix_seconds(moment: datetime, zone: tzinfo | None) -> float | None:
    """Return *moment* in *zone*, None: the machine's, if a TIMESTAMP can hold it."""
    if moment.year not in _TIMESTAMP_YEARS:
        return None  # the machine may not be able to tell at all
    seconds = moment.replace(tzinfo=zone).timestamp()
    return seconds if 0 <= seconds < _TIMESTAMPS else None


def _convert_tz(context: Context, arguments: _Arguments) -> Typed:
    type_ = _DATETIME.or_null()
    moment = _moment(context, arguments[0])
    try:
        source, target = (time_zone_of(str(argument.value)) for argument in arguments[1:])
    except ValueError:
        return Typed(None, type_)
    seconds = None if moment is None else _unix_seconds(moment, source)
    if seconds is None:
        return Typed(moment, type_)
    return Typed(datetime.fromtimestamp(seconds, target).replace(tzinfo=None), type_)


def _date(context: Context, arguments: _Arguments) -> Typed:
    moment = _moment(context, arguments[0])
    return Typed(None if moment is None else moment.date(), _DATE.or_null())


def _from_unixtime(context: Context, arguments: _Arguments) -> Typed:
    seconds = as_number(arguments[0].value)
    type_ = _DATETIME.or_null()
    if seconds is None or not 0 <= seconds <= UNIX_SECONDS_MAX:
        return Typed(None, type_)
    return Typed(local_time(float(seconds), context.zone()), type_)


def _datediff(context: Context, arguments: _Arguments) -> Typed:
    moments = [_moment(context, argument) for argument in arguments]
    type_ = SqlType(Kind.INTEGER, 8, nullable=True)
    if moments[0] is None or moments[1] is None:
        return Typed(None, type_)
    return Typed((moments[0].date() - moments[1].date()).days, type_)


def _timediff(context: Context, arguments: _Arguments) -> Typed:
    moments = [_moment(context, argument) for argument in arguments]
    if moments[0] is None or moments[1] is None:
        return Typed(None, _TIME.or_null())
    between = moments[0] - moments[1]
    bounded = max(-_TIME_MAX, min(between, _TIME_MAX))
    if bounded != between:
        text = f"Truncated incorrect time value: '{as_text(between)}'"
        context.diagnostics.add("Warning", 1292, text)
    return Typed(bounded, _TIME.or_null())


# Fewest and most arguments, and what computes it.
TIME_FUNCTIONS: Final[dict[str, tuple[int, int, Callable[[Context, _Arguments], Typed]]]] = {
    "CONVERT_TZ": (3, 3, _convert_tz),
    "CURDATE": (0, 0, lambda c, _: Typed(_local(c).date(), _DATE)),
    "CURRENT_DATE": (0, 0, lambda c, _: Typed(_local(c).date(), _DATE)),
    "CURRENT_TIME": (0, 1, _clock(_local, "curtime")),
    "CURRENT_TIMESTAMP": (0, 1, _now),
    "CURTIME": (0, 1, _clock(_local, "curtime")),
    "DATE": (1, 1, _date),
    "DATEDIFF": (2, 2, _datediff),
    "FROM_UNIXTIME": (1, 1, _from_unixtime),
    "LOCALTIME": (0, 1, _now),
    "LOCALTIMESTAMP": (0, 1, _now),
    "NOW": (0, 1, _now),
    "SYSDATE": (0, 1, _sysdate),
    "TIMEDIFF": (2, 2, _timediff),
    "UNIX_TIMESTAMP": (0, 1, _unix_timestamp),
    "UTC_DATE": (0, 0, lambda c, _: Typed(_utc(c).date(), _DATE)),
    "UTC_TIME": (0, 1, _clock(_utc, "utc_time")),
    "UTC_TIMESTAMP": (0, 1, _utc_timestamp),
}
