"""What a stream follows, as its reader sees it: a directory, or a server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from .directory_stream import DirectoryStream
from .server_stream import ServerStream

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .event_groups import ReadTask
    from .lag import Lag
    from .options import SourceOptions
    from .stream_offset import StreamOffset


class StreamedHistory(Protocol):
    """What a stream follows: a directory, or a server."""

    def first(self) -> StreamOffset:
        """
        Return where a stream without a checkpoint begins.

        Raises:
            OptionError: an option does not fit the history.
        """

    def end(self) -> StreamOffset:
        """Return where the history ends now."""

    def next(self, begun: StreamOffset, until: StreamOffset | None) -> StreamOffset:
        """
        Return where a micro-batch ends; *begun* if there is nothing new.

        Args:
            begun: where it begins.
            until: not behind this; None: as far as the history goes now.

        Raises:
            DataLossError: groups were purged unread, or another history is here.
        """

    def tasks(self, first: StreamOffset, last: StreamOffset) -> Sequence[ReadTask]:
        """
        Return the tasks of a micro-batch.

        Raises:
            DataLossError: groups of it were purged, or another history is here.
        """

    def end_and_lag(self, last: StreamOffset) -> tuple[StreamOffset, Lag]:
        """
        Return where the history ends now, and how far behind that a stream is.

        Raises:
            DataLossError: groups behind it were purged, or another history is here.
        """

    def close(self) -> None:
        """Close files and connections."""


def streamed_history(options: SourceOptions) -> StreamedHistory:
    """
    Return what a stream follows.

    Raises:
        OptionError: options do not fit a stream.
    """
    return DirectoryStream(options) if options.server is None else ServerStream(options)
