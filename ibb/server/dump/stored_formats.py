"""The format descriptions of a history, as a dump meets them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ibb.protocol.errors import FormatError
from ibb.protocol.format_description import FormatDescription

if TYPE_CHECKING:
    from ibb.storage.position import Position


def stored_format(event: bytes, where: str, place: Position) -> FormatDescription:
    """
    Return what a stored format description event says.

    Args:
        event: without checksum.
        where: how *place* is related to it: "at", or "in force at".
        place: in the history.

    Raises:
        FormatError: it has no sense; what is behind it cannot be understood without it.
    """
    try:
        return FormatDescription.parse(event, has_checksum=False)
    except FormatError as error:
        raise FormatError(f"format description {where} {place}: {error}") from error
