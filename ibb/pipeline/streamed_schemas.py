"""Schemas of tables for the micro-batches of a stream: what was known, and what changed since."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .known_schemas import NOTHING_KNOWN, KnownSchemas
from .schema_file import read_schema_file
from .schema_sources import FollowedSchemas, from_the_beginning, server_schemas
from .streamed_history import streamed_history

if TYPE_CHECKING:
    from .options import SourceOptions
    from .stream_offset import StreamOffset
    from .streamed_history import StreamedHistory
    from .table_schemas import TableSchemas


class StreamedSchemas:
    """
    Knows the schemas of a stream; asks nobody before the first micro-batch.

    Args:
        options: of the stream.
    """

    def __init__(self, options: SourceOptions) -> None:
        self._options = options
        self._of_file: TableSchemas | None = None
        self._from_beginning: FollowedSchemas | None = None
        self._from_server: FollowedSchemas | None = None
        self._history: StreamedHistory | None = None
        self._reached: StreamOffset | None = None

    def close(self) -> None:
        """Close files and connections."""
        if self._history is not None:
            self._history.close()
            self._history = None

    def between(self, first: StreamOffset, last: StreamOffset) -> KnownSchemas:
        """
        Return what is known of tables for the micro-batch between two offsets.

        Raises:
            OptionError: an option does not fit what is there.
            FormatError, DiskError: the history cannot be read.
            DataLossError: the history was purged while it was followed, or is another one.
            ServerRefused: a server is not there, or refuses.
        """
        if not self._options.has_changes:
            return NOTHING_KNOWN
        if self._of_file is None:
            self._of_file = read_schema_file(self._options.schema_file)
            self._begin(first)
        followed = [one for one in (self._from_beginning, self._from_server) if one is not None]
        if followed:
            self._follow(followed, last)
        return KnownSchemas((self._of_file, *(one.history.schemas for one in followed)))

    def _begin(self, first: StreamOffset) -> None:
        options = self._options
        self._history = streamed_history(from_the_beginning(options))
        self._reached = first
        if options.schema_history:
            self._from_beginning = FollowedSchemas()
            self._reached = self._history.first()
        if options.schema_server is not None:
            asked = server_schemas(options.schema_server, assume_unchanged=options.schema_unchanged)
            self._from_server = FollowedSchemas(asked.schemas, asked.since)

    def _follow(self, followed: list[FollowedSchemas], last: StreamOffset) -> None:
        if self._history is None:  # it was closed
            self._history = streamed_history(from_the_beginning(self._options))
        assert self._reached is not None
        tasks = self._history.tasks(self._reached, last)
        for one in followed:
            one.follow(tasks)
        self._reached = last
