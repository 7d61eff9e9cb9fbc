"""
The group writer: one event group on its way into the store, in bounded memory.

Events are checked for their framing and for being one group, freed of log positions, and kept
until they outgrow a piece; then they leave as out-of-band records while the group is still open.
The commit record makes the group visible; without it what was written is garbage that nothing
points to. Source: ibb-format 5.1, 6.1, 6.2, 9.2.
"""

from collections.abc import Callable
from types import TracebackType
from typing import Protocol, Self

from ibb.protocol.errors import FormatError, IbbError
from ibb.protocol.event import EventType
from ibb.protocol.event_splitter import EventPart
from ibb.protocol.fields import U32
from ibb.protocol.gtid import Gtid
from ibb.protocol.gtid_event import GtidEvent, encode_gtid_event, read_gtid

from .commit_position import CommitPosition
from .errors import GroupError
from .event_list import EventList, ListMark, without_position
from .group_head import check_gtid, check_head, check_xid
from .group_shape import TRANSACTION_FLAGS2, GroupShape, is_whole_transaction
from .oob_forest import OobForest
from .record import OobReference, Xid

SAVEPOINTS_MAX = 10_000  # of one group
ENGINES_MAX = 255


class GroupSink(Protocol):
    """What a group writer needs of its store."""

    def write_oob(
        self, group: object, forest: OobForest, piece_size: int, pieces: memoryview
    ) -> int:
        """Write out-of-band pieces, one at least; return the bytes of them."""

    def commit_group(
        self, group: object, gtid: Gtid, lists: list[OobReference], payload: bytes
    ) -> CommitPosition:
        """Write the commit record."""

    def prepare_group(
        self, group: object, xid: Xid, engines: int, oob: OobReference | None
    ) -> CommitPosition:
        """Write the prepare record."""

    def forget_group(self, group: object) -> None:
        """Let go of the files that the group referred to."""

    def wait_for(self, position: CommitPosition) -> None:
        """Return when the record behind *position* is as safe as the store promises."""


class Savepoint:
    """A place in a group to go back to; made by `GroupWriter.savepoint`."""

    def __init__(
        self, statement: ListMark, transaction: ListMark, gtid_event: bytes | None
    ) -> None:
        self.statement = statement
        self.transaction = transaction
        self.gtid_event = gtid_event


class GroupWriter:
    """
    An open event group; made by `Store.begin`, used by one thread at a time.

    As a context manager it rolls back unless the group was committed or prepared.
    """

    def __init__(self, store: GroupSink, piece_size: int, check: Callable[[], None]) -> None:
        self._store = store
        self._piece_size = piece_size
        self._check_store = check
        self._whole: bytes | None = None  # the group, if it came whole in one call
        self._both: tuple[EventList, EventList] | None = None
        self._savepoints: list[Savepoint] = []
        self._gtid_event: bytes | None = None
        self._timestamp = 0  # of the GTID event that will be made
        self._has_lost_events = False
        self._open = True

    def write(self, events: bytes | bytearray | memoryview, *, statement: bool = False) -> None:
        """
        Add events without checksums, in pieces cut anywhere.

        The very first event may be the group's GTID event; otherwise `commit` makes one.
        Positions in event headers are stored as 0.

        Args:
            events: the bytes; the caller may reuse its buffer after the call.
            statement: add to the statement list, which comes before the transaction list in the
                group whatever the order of the calls was.

        Raises:
            GroupError: the bytes are not events, or not those of one group.
            StoreFull: a piece had to be written and there is no room.
            StoreFailed: the store has stopped writing.

        After an error the group can only be rolled back, or to a savepoint.
        """
        self._check_complete()
        is_small = len(events) < self._piece_size
        data = bytes(events) if is_small else memoryview(events).cast("B")
        if (
            self._both is None
            and self._whole is None
            and not statement
            and isinstance(data, bytes)
            and len(data) < self._piece_size
            and is_whole_transaction(data)
        ):
            self._whole = data
            return
        try:
            self._feed(self._statement if statement else self._transaction, data)
        except BaseException:
            self._has_lost_events = True
            raise

    def savepoint(self) -> Savepoint:
        """
        Remember this place of the group, between two events.

        Raises:
            GroupError: inside an event, or more than `SAVEPOINTS_MAX`.
        """
        self._check_complete()
        if not (self._statement.at_boundary and self._transaction.at_boundary):
            raise GroupError("a savepoint inside an event")
        if len(self._savepoints) >= SAVEPOINTS_MAX:
            raise GroupError(f"more than {SAVEPOINTS_MAX} savepoints in one group")
        savepoint = Savepoint(self._statement.save(), self._transaction.save(), self._gtid_event)
        self._savepoints.append(savepoint)
        return savepoint

    def rollback_to(self, savepoint: Savepoint) -> None:
        """
        Forget what was written since a savepoint, which stays; later savepoints are gone.

        Raises:
            GroupError: the savepoint is of another group, or gone.
        """
        self._check_open()
        if savepoint not in self._savepoints:
            raise GroupError("the savepoint does not exist in this group any more")
        del self._savepoints[self._savepoints.index(savepoint) + 1 :]
        self._statement.restore(savepoint.statement)
        self._transaction.restore(savepoint.transaction)
        self._gtid_event = savepoint.gtid_event
        self._has_lost_events = False

    def commit(self, gtid: Gtid, *, wait: bool = True) -> CommitPosition:
        """
        Publish the group as *gtid*.

        Args:
            gtid: its id; must be that of the GTID event if one was written.
            wait: return only when the group is as safe as `flush_log_at_commit` promises: with 1,
                durable. Without it the caller must not tell anybody of the commit before
                `Store.wait_for` or `Store.sync` has returned.

        Returns:
            Where the binlog ends behind the group, and the redo LSN that makes it durable.

        Raises:
            GroupError: the events are not a whole group, or belong to another GTID.
            StoreFull: there is no room; the group is still open.
            StoreFailed: the store has stopped writing.

        After anything else, an interrupt, the group is given up, unless its commit was written.
        """
        self._check_complete()
        try:
            references, payload = self._finished(gtid)
            position = self._store.commit_group(self, gtid, references, payload)
            self._open = False
        except IbbError:
            raise  # it may be committed once more
        except BaseException:
            self.rollback()  # interrupted: how much of it was written is not known
            raise
        if wait:
            self._store.wait_for(position)
        return position

    def prepare(self, xid: Xid, *, engines: int = 1) -> CommitPosition:
        """
        Prepare the group as an XA transaction: it survives a crash and shows up in no reader.

        `Store.commit_prepared` publishes it, `Store.rollback_prepared` gives it up.

        Args:
            xid: its name; not that of another prepared one.
            engines: number of storage engines that take part.

        Raises:
            GroupError: the name is taken or too long, the events are not a whole transaction that
                ends with XID, both lists have events, or a GTID event was written.
            StoreFull: there is no room; the group is still open.
            StoreFailed: the store has stopped writing.
        """
        self._check_complete()
        if self._statement.has_events or self._gtid_event is not None:
            raise GroupError("only a transaction list without a GTID event can be prepared")
        if not self._transaction.at_boundary:
            raise GroupError("the group ends inside an event")
        shape = self._transaction.shape
        if shape is not None and shape.finished() != TRANSACTION_FLAGS2:
            raise GroupError("only a transaction that ends with XID can be prepared")
        check_xid(xid)
        if not 0 <= engines <= ENGINES_MAX:
            raise GroupError(f"{engines} engines: 0 to {ENGINES_MAX} can be stored")
        try:
            self._write_pieces(self._transaction, 1)
            forest = self._transaction.forest
            reference = forest.reference() if forest.count else None
            position = self._store.prepare_group(self, xid, engines, reference)
            self._open = False
        except IbbError:
            raise
        except BaseException:
            self.rollback()  # as above
            raise
        self._store.wait_for(position)
        return position

    def rollback(self) -> None:
        """Give the group up; a second call, or one after `commit` or `prepare`, does nothing."""
        if self._open:
            self._open = False
            self._store.forget_group(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.rollback()

    @property
    def _statement(self) -> EventList:
        return self._lists()[0]

    @property
    def _transaction(self) -> EventList:
        return self._lists()[1]

    def _lists(self) -> tuple[EventList, EventList]:
        """Return both lists; a group that came whole goes into the second of them."""
        if self._both is None:
            self._both = EventList(), EventList()
            whole, self._whole = self._whole, None
            if whole is not None:
                self._feed(self._transaction, whole)
        return self._both

    def _feed(self, target: EventList, data: bytes | memoryview) -> None:
        rest = memoryview(data)
        try:
            while rest:
                if target.takes_plain:
                    rest = rest[target.keep_plain(rest) :]
                    self._write_full(target)
                size = target.step(rest)
                for part in target.feed(rest[:size]):
                    self._add(target, part)
                rest = rest[size:]
        except FormatError as error:
            raise GroupError(f"not the events of one group: {error}") from error

    def _finished(self, gtid: Gtid) -> tuple[list[OobReference], bytes]:
        """Return what the commit record refers to, and what it holds; write the last pieces."""
        whole = self._whole
        if whole is not None:
            check_gtid(gtid)
            (timestamp,) = U32.unpack_from(whole)
            return [], encode_gtid_event(gtid, timestamp, TRANSACTION_FLAGS2) + whole
        head = self._head(gtid)
        lists = self._lists()
        if not any(events.forest.count for events in lists):
            return [], b"".join((head, *(events.contents() for events in lists)))
        for events in lists:
            self._write_pieces(events, 1)
        return [events.forest.reference() for events in lists if events.forest.count], head

    def _add(self, target: EventList, part: EventPart) -> None:
        if part.first and self._take_gtid_event(part):
            return
        if part.first:
            if target.shape is None:
                target.shape = self._new_shape(part)
            target.shape.add(part)
        target.keep(part)
        self._write_full(target)

    def _take_gtid_event(self, part: EventPart) -> bool:
        """Set the GTID event aside if this is one, and the first event of all."""
        is_first = self._statement.shape is self._transaction.shape is None
        if part.header.type != EventType.GTID or not is_first or self._gtid_event is not None:
            return False
        check_head(part.data)
        GtidEvent.parse(part.data)  # all of it, since it will be kept as it is
        self._gtid_event = without_position(part.data)
        return True

    def _new_shape(self, part: EventPart) -> GroupShape:
        if self._gtid_event is not None:
            return GroupShape(read_gtid(self._gtid_event)[1])
        self._timestamp = part.header.timestamp
        return GroupShape(None)

    def _write_full(self, events: EventList) -> None:
        """Write what makes whole pieces."""
        if events.size >= self._piece_size:
            self._write_pieces(events, self._piece_size)

    def _write_pieces(self, events: EventList, size_min: int) -> None:
        """Write out-of-band records while at least *size_min* bytes of a list are kept."""
        events.take(
            size_min,
            self._piece_size,
            lambda pieces: self._store.write_oob(self, events.forest, self._piece_size, pieces),
        )

    def _head(self, gtid: Gtid) -> bytes:
        """Return the GTID event, made or as it was written."""
        check_gtid(gtid)
        flags2 = self._finished_shape(gtid)
        if self._gtid_event is None:
            return encode_gtid_event(gtid, self._timestamp, flags2)
        found, _ = read_gtid(self._gtid_event)
        if found != gtid:
            raise GroupError(f"the group's GTID event says {found}, commit says {gtid}")
        return self._gtid_event

    def _finished_shape(self, gtid: Gtid) -> int:
        """Check that the lists, one behind the other, are a whole group; return its flags2."""
        statement, transaction = self._statement, self._transaction
        if not (statement.at_boundary and transaction.at_boundary):
            raise GroupError(f"group {gtid} ends inside an event")
        last = transaction.shape or statement.shape
        if last is None:
            raise GroupError(f"group {gtid} is empty")
        if transaction.shape and statement.shape and not statement.shape.is_open:
            raise GroupError(f"the statement list of group {gtid} ends the group")
        return last.finished()

    def _check_open(self) -> None:
        self._check_store()
        if not self._open:
            raise GroupError("the group was committed, prepared or rolled back before")

    def _check_complete(self) -> None:
        self._check_open()
        if self._has_lost_events:
            raise GroupError("an earlier write of the group failed: roll it back")
