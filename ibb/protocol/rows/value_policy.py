"""What becomes of values that columns of other systems cannot hold, and how that is said."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from ibb.protocol.errors import IbbError


class NoDates(StrEnum):
    """What becomes of 0000-00-00, 2024-02-31, the year 0, which no calendar has."""

    NULL = "null"  # counted in `ColumnBuffers.left_out`
    ERROR = "error"
    TEXT = "text"  # the whole column is a text, as SELECT shows it


class Times(StrEnum):
    """What TIME is, which goes from -838:59:59 to 838:59:59."""

    DURATION = "duration"
    MICROSECONDS = "microseconds"  # a 64-bit integer
    TEXT = "text"  # as SELECT shows it


class BadText(StrEnum):
    """What becomes of bytes that are no characters of their column's character set."""

    ERROR = "error"
    REPLACE = "replace"  # by U+FFFD


class Unknown(StrEnum):
    """What becomes of columns of which neither table map nor schema says enough."""

    ERROR = "error"
    BYTES = "bytes"  # integers with sign, strings as bytes, ENUM and SET as numbers


@dataclass(frozen=True, slots=True)
class ValuePolicy:
    """
    Choices where a value has no exact counterpart; the first of each is the default.

    Args:
        no_dates: dates that are none.
        times: the type TIME.
        bad_text: bytes that are no characters.
        unknown: columns without sign, character set or labels.
    """

    no_dates: NoDates = NoDates.NULL
    times: Times = Times.DURATION
    bad_text: BadText = BadText.ERROR
    unknown: Unknown = Unknown.ERROR


class ValueRefused(IbbError):  # noqa: N818 (a condition, named as users will read it)
    """A value cannot be given as its column's type; the text names table, column, row and cure."""


class SchemaMissing(IbbError):  # noqa: N818
    """Columns cannot be read: nobody says their signs, character sets or labels."""
