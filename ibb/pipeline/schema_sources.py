"""
Where schemas of tables come from, by the options: a file, the history's statements, a server.

The driver asks them, and what they say travels with the partitions.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

from ibb.protocol.errors import FormatError, IbbError
from ibb.protocol.event import EventType
from ibb.protocol.event_splitter import EventSplitter
from ibb.protocol.gtid import GtidPosition
from ibb.protocol.gtid_event import GtidEvent, GtidExtraFlag, GtidFlag

from .errors import OptionError, ServerRefused
from .known_schemas import KnownSchemas
from .options import EARLIEST
from .read_plan import groups_of, plan_read
from .schema_file import read_schema_file
from .schema_history import SchemaHistory
from .server_connection import ServerConnection
from .table_schemas import TableSchemas, behind
from .tables.query_event import QueryEvent

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from .event_groups import EventGroup, ReadTask
    from .options import SourceOptions
    from .server_address import ServerAddress

STATEMENT_BYTES_MAX: Final = 16 << 20  # of one that defines a table
_DEFINING: Final = GtidFlag.DDL | GtidFlag.STANDALONE
_NOT_DONE: Final = GtidExtraFlag.START_ALTER | GtidExtraFlag.ROLLBACK_ALTER
_QUERIES: Final = frozenset((EventType.QUERY, EventType.QUERY_COMPRESSED))


def schemas_of(options: SourceOptions) -> KnownSchemas:
    """
    Return what is known of the tables of a batch read.

    Raises:
        OptionError: an option does not fit what is there.
        FormatError, DiskError: the history cannot be read.
        ServerRefused: a server is not there, or refuses.
        SchemaError: what a server says of tables cannot be.
    """
    sources = [read_schema_file(options.schema_file)]
    if options.schema_history:
        followed = FollowedSchemas()
        followed.follow(plan_read(from_the_beginning(options)))
        sources.append(followed.history.schemas)
    if options.schema_server is not None:
        server, unchanged = options.schema_server, options.schema_unchanged
        sources.append(server_schemas(server, assume_unchanged=unchanged).schemas)
    return KnownSchemas(tuple(sources))


def from_the_beginning(options: SourceOptions) -> SourceOptions:
    """
    Return options that read a whole history in one partition, up to where a read ends.

    Raises:
        OptionError: there are several histories.
    """
    if len(options.paths) > 1:
        raise OptionError("schemaHistory", "it takes one directory: each has a history of its own")
    return replace(
        options,
        start=EARLIEST,
        since=None,
        before=None,
        filtered_since=None,
        filtered_before=None,
        domains=frozenset(),
        partitions_min=1,
        partition_bytes_max=1 << 62,
        trigger_groups_max=None,
        trigger_bytes_max=None,
        lease=None,
    )


class ServerSchemas(NamedTuple):
    """
    What a server says of its tables.

    Attributes:
        schemas: of all of them.
        since: the first GTIDs behind its answer.
    """

    schemas: TableSchemas
    since: GtidPosition


def server_schemas(server: ServerAddress, *, assume_unchanged: bool) -> ServerSchemas:
    """
    Ask a server for its tables.

    Raises:
        ServerRefused: it is not there, or refuses.
        SchemaError: it goes on writing while it is asked.
    """
    try:
        with ServerConnection(server) as connection:
            ((position,),) = connection.rows("SELECT @@global.gtid_binlog_pos")
            schemas = TableSchemas.from_server(connection.rows, assume_unchanged=assume_unchanged)
    except (OSError, IbbError) as error:
        if isinstance(error, OptionError | ServerRefused):
            raise
        raise ServerRefused(f"definitions of server {server}: {error}") from error
    found = [since for *_, since in schemas.newest() if since is not None]
    return ServerSchemas(schemas, found[0] if found else behind(GtidPosition.parse(position or "")))


class FollowedSchemas:
    """
    Follows the statements of a history's groups, which come in their order.

    Args:
        known: how tables were before the first of them, or None.
        begun: the first GTIDs that are to be followed; what is before is in *known*.

    Attributes:
        history: what they come to.
        reached: the position behind the last group.
    """

    def __init__(
        self, known: TableSchemas | None = None, begun: GtidPosition | None = None
    ) -> None:
        self.history = SchemaHistory()
        self.reached = GtidPosition()
        self._begun = begun or GtidPosition()
        if known is not None:
            self.history.begin_with(known)

    def follow(self, tasks: Iterable[ReadTask]) -> None:
        """
        Take what tasks read; of most groups nothing but the beginning is looked at.

        Raises:
            FormatError, DiskError, ServerRefused, DataLossError: it cannot be read.
        """
        for task in tasks:
            for group in groups_of(task):
                self._take(group)

    def _take(self, group: EventGroup) -> None:
        event = GtidEvent.parse(group.head)
        self.reached.set(event.gtid)
        begun = self._begun.get(event.gtid.domain)
        if begun is not None and event.gtid.seq < begun.seq:
            return
        if not event.flags2 & _DEFINING or event.flags_extra & _NOT_DONE:
            return
        since = behind(self.reached)
        since.set(event.gtid)
        for statement in _statements(group):
            self.history.follow(
                statement.sql,
                statement.database,
                since,
                modes=statement.modes,
                server_charset=statement.server_charset,
                error=statement.error,
                uses_temporary=statement.uses_temporary,
            )


def _statements(group: EventGroup) -> Iterator[QueryEvent]:
    splitter, held = EventSplitter(), bytearray()
    for piece in group.pieces():
        for part in splitter.feed(piece):
            if part.header.type not in _QUERIES:
                continue
            if part.header.length > STATEMENT_BYTES_MAX:
                raise FormatError(
                    f"group {group.gtid} has a statement of more than {STATEMENT_BYTES_MAX} bytes,"
                    " which option schemaHistory does not follow"
                )
            held += part.data
            if part.last:
                yield QueryEvent.parse(bytes(held))
                held.clear()
