"""
The group committer: pieces, commit records and prepare records of groups, as the engine wants them.

It keeps the pins of open groups and the list of prepared XA transactions in step with what is
written. Source: ibb-format 5.5, 5.6, 9.2, 9.6.
"""

from bisect import bisect_right
from collections.abc import Callable, Hashable

from ibb.protocol.group_run import GroupRun
from ibb.protocol.gtid import Gtid

from .commit_gate import CommitGate
from .commit_position import CommitPosition
from .engine import Engine
from .errors import GroupError
from .new_record import Appended, NewRecord
from .oob_forest import OobForest
from .oob_run import plan_run
from .record import (
    NO_LISTS,
    OOB_HEADER_BYTES_MAX,
    OobReference,
    RecordType,
    XaComplete,
    XaPrepare,
    Xid,
    encode_commit_prefix,
    encode_oob_header,
    encode_xa_complete,
    encode_xa_prepare,
)
from .record_bound import RecordBound, run_bound
from .record_run import RecordRun
from .xa import PreparedXa

RUN_BYTES_MAX = 1 << 20  # of pieces that are written together, while others wait
RUN_PIECES_MAX = 256
RUN_PIECES_MIN = 2
FEW_GROUPS = 2  # take less time one by one, ...
FEW_BYTES = 4096  # ... if each is likely to fit into the page that is begun


class GroupCommitter:
    """
    Writes for group writers; implements their `GroupSink`.

    There is one as long as the store is open: groups that were begun before RESET MASTER go on.

    Args:
        engine: takes the records.

    Attributes:
        gate: stands behind every commit, or None.
    """

    def __init__(self, engine: Engine) -> None:
        self.gate: CommitGate | None = None
        self._engine = engine
        self._prepared: dict[Xid, PreparedXa] = dict(engine.opened.prepared_xa)

    def write_oob(
        self, group: Hashable, forest: OobForest, piece_size: int, pieces: memoryview
    ) -> int:
        """Write out-of-band pieces of an open group, one at least; return the bytes of them."""
        with self._engine.writing:
            writer = self._engine.writer
            writer.pins.pin(group, writer.file_no)
            count = self._run_max(piece_size)
            run = pieces[: count * piece_size]
            if run and (done := self._write_run(forest, piece_size, run)):
                return done
            piece = pieces[:piece_size]
            data = encode_oob_header(forest.next_node()) + piece
            self._engine.append(NewRecord(RecordType.OOB, data, on_start=forest.add))
            return len(piece)

    def _run_max(self, piece_size: int) -> int:
        """Return how many pieces should go together, as much room as there is; 0: none."""
        room, page_size = self._engine.room, self._engine.writer.page_size
        size = piece_size + OOB_HEADER_BYTES_MAX
        count = min(min(RUN_BYTES_MAX, room.run_bytes_max) // piece_size, RUN_PIECES_MAX)
        while count and not room.takes(run_bound(count, count * size, page_size)):
            count //= 2
        return count if count >= RUN_PIECES_MIN else 0

    def _write_run(self, forest: OobForest, piece_size: int, pieces: memoryview) -> int:
        """Write as many pieces as go into the file's pages just so; return the bytes of them."""
        engine, page_size = self._engine, self._engine.writer.page_size
        planned = plan_run(forest, engine.writer.end, page_size, piece_size, pieces)
        count = len(planned.bounds) - 1
        bound = run_bound(count, planned.size, page_size)
        run = RecordRun(
            RecordType.OOB, planned.heads, planned.head_bounds, pieces, planned.bounds, 0, count
        )

        def note_places() -> None:
            forest.add_run(planned.file_no, planned.starts, run.next)

        if engine.append_run(run, bound, note_places) is None:
            return 0
        return min(run.next * piece_size, len(pieces))

    def commit_group(
        self, group: Hashable, gtid: Gtid, lists: list[OobReference], payload: bytes
    ) -> CommitPosition:
        """Write the commit record of an open group."""
        with self._engine.writing:
            position = self._commit(gtid, encode_commit_prefix(lists) + payload)
            self._engine.writer.pins.unpin(group)
        return position

    def commit_run(self, groups: GroupRun) -> CommitPosition:
        """Write the commit records of whole groups, of which there is one at least."""
        done, position = 0, None
        while done < groups.count:
            with self._engine.writing:
                at, position = done, None
                if self.gate is None and not _are_few(groups, at):
                    done, position = self._commit_many(groups, at)
                if position is None:
                    data = NO_LISTS + groups.data[groups.bounds[at] : groups.bounds[at + 1]]
                    done, position = at + 1, self._commit(groups.gtid(at), data)
        assert position is not None
        return position

    def _commit_many(self, groups: GroupRun, first: int) -> tuple[int, CommitPosition | None]:
        """Write as many groups as go into the file's pages just so; return the next one."""
        engine, bounds = self._engine, groups.bounds
        if not engine.writer.takes_pairs(len(groups.origins)):
            return first, None
        end_max = bounds[first] + engine.room.run_bytes_max
        count = bisect_right(bounds, end_max, first + 1, groups.count + 1) - 1 - first
        if not count:
            return first, None

        def bound_of_first(count: int) -> RecordBound:
            size = bounds[first + count] - bounds[first] + count * len(NO_LISTS)
            return run_bound(count, size, engine.writer.page_size)

        while not engine.room.takes(bound := bound_of_first(count)):
            count //= 2
            if not count:
                return first, None
        run = RecordRun(RecordType.COMMIT, NO_LISTS, None, groups.data, bounds, first, count)
        appended = engine.append_run(run, bound, lambda: groups.newest(first, run.next))
        if appended is None:
            return first, None
        return run.next, commit_position(groups.gtid(run.next - 1), appended)

    def _commit(self, gtid: Gtid, data: bytes) -> CommitPosition:
        engine = self._engine
        if self.gate is None:
            end, lsn = engine.append_commit(data, gtid)
            return CommitPosition(gtid, *end, lsn)
        return self._append_noted(gtid, lambda: engine.append_commit(data, gtid))

    def prepare_group(
        self, group: Hashable, xid: Xid, engines: int, oob: OobReference | None
    ) -> CommitPosition:
        """Write the prepare record of an open group; its pieces are all written."""
        if oob is None:
            raise GroupError("an empty group cannot be prepared")
        with self._engine.writing:
            if xid in self._prepared:
                raise GroupError(f"a transaction named {xid} is prepared already")
            self._engine.writer.pins.prepare(group, xid)
            data = encode_xa_prepare(XaPrepare(engines, xid, oob))
            try:
                appended = self._engine.append(NewRecord(RecordType.XA_PREPARE, data))
            except BaseException:
                self._engine.writer.pins.unprepare(xid, group)
                raise
            self._prepared[xid] = PreparedXa(xid, engines, oob, oob.first.file_no)
        return commit_position(None, appended)

    def forget_group(self, group: Hashable) -> None:
        """Let go of the files that an open group referred to."""
        with self._engine.writing:
            self._engine.writer.pins.unpin(group)

    @property
    def are_synced(self) -> bool:
        """Whether who commits has it synced, so that no reader needs to."""
        return not self._engine.durable.tells_of_pending

    def wait_for(self, position: CommitPosition) -> None:
        """Return when a record is as safe as `flush_log_at_commit` and the gate promise."""
        self._engine.wait_for(position.lsn)
        if self.gate is not None and position.gtid is not None:
            self.gate.wait(position)

    def prepared(self) -> list[PreparedXa]:
        """Return the XA transactions that wait for their end."""
        with self._engine.writing:
            return list(self._prepared.values())

    def commit_prepared(self, xid: Xid, gtid: Gtid, gtid_event: bytes) -> CommitPosition:
        """Publish a prepared XA transaction; raises GroupError if there is none of that name."""
        with self._engine.writing:
            payload = encode_commit_prefix([self._find(xid).oob]) + gtid_event
            complete = encode_xa_complete(XaComplete(xid, rolled_back=False))
            records = (
                NewRecord(RecordType.XA_COMPLETE, complete),
                NewRecord(RecordType.COMMIT, payload, gtid),
            )
            position = self._append_noted(gtid, lambda: self._engine.append(*records))
            self._forget(xid)
        self.wait_for(position)
        return position

    def rollback_prepared(self, xid: Xid) -> None:
        """Give a prepared XA transaction up; raises GroupError if there is none of that name."""
        with self._engine.writing:
            self._find(xid)
            complete = encode_xa_complete(XaComplete(xid, rolled_back=True))
            appended = self._engine.append(NewRecord(RecordType.XA_COMPLETE, complete))
            self._forget(xid)
        self._engine.wait_for(appended.lsn)

    def _append_noted(self, gtid: Gtid, append: Callable[[], Appended]) -> CommitPosition:
        """Write a commit, with the gate knowing of it before anybody can see it."""
        gate = self.gate
        if gate is None:
            return commit_position(gtid, append())
        gate.expect(gtid)
        try:
            position = commit_position(gtid, append())
        except BaseException:
            gate.give_up(gtid)
            raise
        gate.written(position)
        return position

    def _find(self, xid: Xid) -> PreparedXa:
        prepared = self._prepared.get(xid)
        if prepared is None:
            raise GroupError(f"no transaction named {xid} is prepared")
        return prepared

    def _forget(self, xid: Xid) -> None:
        del self._prepared[xid]
        self._engine.writer.pins.unpin(xid)


def _are_few(groups: GroupRun, first: int) -> bool:
    """Tell whether the groups from *first* on are written in less time one by one."""
    bounds, count = groups.bounds, groups.count
    return count - first <= FEW_GROUPS and bounds[count] - bounds[first] <= FEW_BYTES


def commit_position(gtid: Gtid | None, appended: Appended) -> CommitPosition:
    """Return the answer to a commit."""
    return CommitPosition(gtid, appended.end.file_no, appended.end.offset, appended.lsn)
