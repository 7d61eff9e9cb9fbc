"""
The writer: records become chunks in pages, state records and headers where they are due.

One record is one mini-transaction. Nothing here waits for the disk except where memory or the
redo log is full; making changes durable is the store's business. All calls belong to the holder
of the store's write lock. Source: ibb-format 9.1, 9.2, 12.1.
"""

from ibb.protocol.binlog_state import BinlogState
from ibb.protocol.gtid import Gtid

from .chunk import (
    CHUNK_HEADER_SIZE,
    CHUNK_SIZE_MIN,
    CONTINUATION,
    FILLER,
    LAST,
    chunk_header,
)
from .fifo_page import FifoPage, set_logged
from .file_header import NO_XA, FileHeader
from .file_pins import FilePins
from .file_shape import FileShape, state_fits
from .mini_transaction import ChangeLog, MiniTransaction
from .new_record import NewRecord
from .options import STATE_BYTES_MAX
from .position import Position
from .record import RecordType, encode_state
from .record_run import RecordRun
from .redo_record import Change
from .writer_place import NextFile, Pages, WriterPlace

STATE_ENTRY_BYTES_MAX = 5 + 5 + 9  # domain, server, sequence number as compressed integers
STATE_PAIRS_MAX = STATE_BYTES_MAX // STATE_ENTRY_BYTES_MAX - 2  # whatever they are


def state_bytes_max(pairs: int) -> int:
    """Return at least the size of a state record's data, with one pair more than *pairs*."""
    return (pairs + 2) * STATE_ENTRY_BYTES_MAX


class Writer:
    """
    Appends records.

    Args:
        place: where to go on.
        fifo: takes the pages.
        redo: takes the changes.
        files: makes the next file.

    Attributes:
        pins: the files that open and prepared transactions refer to.
    """

    def __init__(self, place: WriterPlace, fifo: Pages, redo: ChangeLog, files: NextFile) -> None:
        self._fifo = fifo
        self._redo = redo
        self._files = files
        self._header = place.header
        self._page_no = place.page_no
        self._tail = place.tail
        self._is_behind_state = False  # that filled its page exactly
        self._full = place.full
        self._differential = place.differential
        self._pairs = len(place.full)
        self.pins = FilePins()

    @property
    def file_no(self) -> int:
        """The active file."""
        return self._header.file_no

    @property
    def page_size(self) -> int:
        """Bytes a page of the active file."""
        return self._header.page_size

    @property
    def end(self) -> Position:
        """The end of everything written."""
        header, tail = self._header, self._tail
        used = tail.used if tail is not None else 0
        return Position(header.file_no, self._page_no * header.page_size + used)

    @property
    def tail(self) -> FifoPage | None:
        """The page that takes the next byte, if it has bytes already."""
        return self._tail

    @property
    def shape(self) -> FileShape:
        """What the active file is like."""
        header = self._header
        return FileShape(header.page_count, header.page_size, header.state_interval)

    @property
    def state_bytes_max(self) -> int:
        """At least the size of a full state record's data, one more pair included."""
        return state_bytes_max(self._pairs)

    def takes_pairs(self, new: int) -> bool:
        """Tell whether a state record has room for so many (domain, server) pairs more."""
        return self._pairs + new <= STATE_PAIRS_MAX

    def knows_pair(self, gtid: Gtid) -> bool:
        """Tell whether the full state has a GTID of the same domain and server."""
        return self._full.seq(gtid.domain, gtid.server) is not None

    def copy(self, fifo: Pages, redo: ChangeLog, files: NextFile) -> "Writer":
        """Return a writer that goes on from here to somewhere else; this one does not change."""
        tail = None
        if self._tail is not None:
            tail = FifoPage(self.file_no, self._page_no, self.page_size)
            tail.used, tail.flushed_clean = self._tail.used, self._tail.flushed_clean
        place = WriterPlace(
            self._header, self._page_no, tail, self._full.copy(), self._differential.copy()
        )
        copy = Writer(place, fifo, redo, files)
        copy._is_behind_state, copy.pins = self._is_behind_state, self.pins
        return copy

    def state_without(self, domains: frozenset[int]) -> list[Gtid]:
        """Return the full state as it would be once *domains* were forgotten."""
        return [gtid for gtid in self._full.entries() if gtid.domain not in domains]

    def delete_domains(self, domains: frozenset[int]) -> None:
        """Forget domains; the next file's full state will be without them."""
        kept = self.state_without(domains)
        self._full = BinlogState(kept)
        self._pairs = len(kept)

    def pages_left(self) -> int:
        """Return how many pages of the active file have not been begun."""
        begun = self._page_no + (1 if self._tail else 0)
        return self._header.page_count - begun

    def append(self, *records: NewRecord) -> tuple[Position, int]:
        """
        Write records as one unit; return where the first begins and the LSN behind the last.

        Raises:
            StoreFull: the next file is needed and cannot be made.
            StoreFailed: the redo log takes nothing more.
        """
        assert records
        transaction = MiniTransaction()
        starts = [self._append_one(transaction, record) for record in records]
        return starts[0], transaction.commit(self._redo)

    def append_small(self, record_type: RecordType, data: bytes, gtid: Gtid | None) -> int | None:
        """
        Write a record that stays inside the page at hand as `append` would, in less time.

        Returns:
            The LSN behind it; None: nothing was written, call `append`.

        Raises:
            StoreFailed: the redo log takes nothing more.
        """
        page, redo = self._tail, self._redo
        if page is None or page.flushed_clean or not redo.takes_small:
            return None
        start = page.used
        end = start + CHUNK_HEADER_SIZE + len(data)
        if end >= page.end:
            return None
        if gtid is not None:
            if self._pairs >= STATE_PAIRS_MAX:
                return None
            self.note(gtid)
        chunk = chunk_header(record_type | LAST, len(data)) + data
        page.data[start:end] = chunk
        page.used = end
        page.last_lsn = lsn = redo.append_small(Change(page.file_no, page.page_no, start, chunk))
        return lsn

    def append_run(self, run: RecordRun) -> int | None:
        """
        Write records of a run, each as `append` would, until one is in the way of a state or file.

        The caller notes their GTIDs; nothing that it writes before depends on them.

        Returns:
            The LSN behind them; None: nothing was written, the next one is for `append`.

        Raises:
            StoreFailed: the redo log takes nothing more.
        """
        redo = self._redo
        run.begin(self.file_no, redo.next_lsn, redo.synced_lsn)
        changed = run.fill_pages(
            self._tail, self._fifo, self._page_no, self.page_size, self.pages_before_state
        )
        if not changed:
            return None
        assert not run.is_open
        last = changed[-1]
        is_full = last.used == last.end
        self._tail, self._page_no = None if is_full else last, last.page_no + is_full
        lsn = redo.append_run(run.redo_groups(), run.redo_size)
        set_logged(changed, lsn)
        return lsn

    @property
    def pages_before_state(self) -> int:
        """How many pages behind the one that is begun begin with neither a state nor a file."""
        page_no = self._page_no + (self._tail is not None)
        if page_no == 1 or self._is_behind_state:
            return 0
        end, interval = self._header.page_count, self._header.state_interval
        if interval:
            end = min(end, -(-page_no // interval) * interval)
        return max(end - page_no, 0)

    def note(self, gtid: Gtid) -> None:
        """Enter *gtid* into the states."""
        self._pairs += self._full.seq(gtid.domain, gtid.server) is None
        self._full.update(gtid)
        self._differential.update(gtid)

    def _append_one(self, transaction: MiniTransaction, record: NewRecord) -> Position:
        assert record.data
        start = self._place_first_chunk(transaction)
        if record.on_start is not None:
            record.on_start(start)
        if record.gtid is not None:
            self.note(record.gtid)
        self._write(transaction, record.type, record.data, in_state=False)
        return start

    def begin_first_file(self, header: FileHeader) -> int:
        """Write the header and first state record of a directory's first file; return the LSN."""
        transaction = MiniTransaction()
        self._begin_file(transaction, header)
        self._open_page(transaction, in_state=False)
        return transaction.commit(self._redo)

    def finish_file(self) -> int:
        """
        Fill the page that is begun with a dummy record; return the pages that the file needs.

        The next record begins in the next file once `begin_next_file` was called.
        """
        transaction = MiniTransaction()
        if self._tail is None and self._page_no == 1:
            # Another program came no further than the header; a file begins with a state.
            self._open_page(transaction, in_state=False)
        if self._tail is not None:
            room = self._tail.room
            if room >= CHUNK_SIZE_MIN:
                self._write(
                    transaction,
                    RecordType.DUMMY,
                    bytes([FILLER]) * (room - CHUNK_HEADER_SIZE),
                    in_state=True,
                )
            else:
                self._fill(transaction, self._tail)
            transaction.commit(self._redo)
        return self._page_no

    def begin_next_file(self) -> int:
        """Write the next file's header and full state, if it fits, at once; return the LSN."""
        transaction = MiniTransaction()
        self._next_file(transaction)
        if self._state_that_fits(self._full.entries()) is not None:
            self._open_page(transaction, in_state=False)
        return transaction.commit(self._redo)

    def _place_first_chunk(self, transaction: MiniTransaction) -> Position:
        """Make room for at least one chunk; return where it goes."""
        while True:
            if self._tail is None:
                self._open_page(transaction, in_state=False)
            elif self._tail.room < CHUNK_SIZE_MIN:
                self._fill(transaction, self._tail)
            else:
                return self.end

    def _write(
        self, transaction: MiniTransaction, record_type: RecordType, data: bytes, *, in_state: bool
    ) -> None:
        """Cut *data* into chunks from here on."""
        done, size, flags = 0, len(data), 0
        while done < size:
            page = self._tail
            if page is None:
                self._open_page(transaction, in_state=in_state)
                continue
            if page.room < CHUNK_SIZE_MIN:
                self._fill(transaction, page)
                continue
            length = min(page.room - CHUNK_HEADER_SIZE, size - done)
            if done + length == size:
                flags |= LAST
            transaction.touch(page)
            start = page.used + CHUNK_HEADER_SIZE
            page.data[page.used : start] = chunk_header(record_type | flags, length)
            page.data[start : start + length] = memoryview(data)[done : done + length]
            page.used = start + length
            done += length
            flags = CONTINUATION
            if page.room == 0:
                self._leave(transaction, page)

    def _fill(self, transaction: MiniTransaction, page: FifoPage) -> None:
        """Pad the one to three bytes in which no chunk fits."""
        transaction.touch(page)
        page.data[page.used : page.end] = bytes([FILLER]) * page.room
        page.used = page.end
        self._leave(transaction, page)

    def _leave(self, transaction: MiniTransaction, page: FifoPage) -> None:
        transaction.fill(page)
        self._tail = None
        self._page_no += 1

    def _open_page(self, transaction: MiniTransaction, *, in_state: bool) -> None:
        """Begin the next page, of the next file if need be, with what is due at its start."""
        if self._page_no >= self._header.page_count:
            self._next_file(transaction)
        page_no = self._page_no
        self._tail = self._fifo.append(self.file_no, page_no, self.page_size)
        interval = self._header.state_interval
        in_state, self._is_behind_state = in_state or self._is_behind_state, False
        if page_no == 1:
            self._differential = BinlogState()
            entries = self._full.entries()
        elif not in_state and interval and page_no % interval == 0:
            entries = self._differential.entries()
        else:
            return
        self._write_state(transaction, entries)

    def _write_state(self, transaction: MiniTransaction, entries: list[Gtid]) -> None:
        """Write a state record if something still fits behind it in the file."""
        data = self._state_that_fits(entries)
        if data is None:
            return
        self._write(transaction, RecordType.GTID_STATE, data, in_state=True)
        # If it filled its page exactly the next one follows with no second state, but only when
        # there is something for it: a page that was begun and holds nothing would be flushed.
        self._is_behind_state = self._tail is None

    def _state_that_fits(self, entries: list[Gtid]) -> bytes | None:
        """Return a state record for the page that is due, None without room for it."""
        data = encode_state(entries, self.pins.lowest_prepared())
        assert len(data) <= STATE_BYTES_MAX
        fits = state_fits(len(data), self.page_size, self._header.page_count - self._page_no)
        return data if fits else None

    def _next_file(self, transaction: MiniTransaction) -> None:
        file_no = self.file_no + 1
        shape = self._files.next_file(file_no)
        oob_reference, xa_reference = self.pins.lowest(), self.pins.lowest_prepared()
        self._begin_file(
            transaction,
            FileHeader(
                page_size=shape.page_size,
                file_no=file_no,
                page_count=shape.pages,
                lsn=self._redo.next_lsn,
                state_interval=shape.interval,
                oob_reference=file_no if oob_reference is None else oob_reference,
                xa_reference=NO_XA if xa_reference is None else xa_reference,
            ),
        )
        self._files.file_entered(file_no)

    def _begin_file(self, transaction: MiniTransaction, header: FileHeader) -> None:
        self._header = header
        page = self._fifo.append(header.file_no, 0, header.page_size)
        transaction.touch(page)
        page.data[:] = header.encode()
        page.used = page.end
        transaction.fill(page)
        self._tail = None
        self._page_no = 1
