"""
Binlog files built by hand, chunk by chunk, for tests of the readers.

It shares no code with the writer of the store, and lets a test put anything anywhere.
"""

from pathlib import Path

from ibb.protocol.binlog_state import BinlogState
from ibb.protocol.gtid import Gtid
from ibb.storage.file_header import FileHeader
from ibb.storage.file_name import binlog_name
from ibb.storage.oob_forest import OobForest
from ibb.storage.page_seal import seal_page
from ibb.storage.position import Position
from ibb.storage.record import (
    RecordType,
    encode_commit_prefix,
    encode_oob_header,
    encode_state,
)

LAST, CONTINUATION = 0x40, 0x80


def gtid_event(gtid: Gtid, timestamp: int = 0x6553F100) -> bytes:
    """Return a GTID event of 38 bytes, of a standalone group."""
    header = timestamp.to_bytes(4, "little") + bytes([162]) + gtid.server.to_bytes(4, "little")
    body = gtid.seq.to_bytes(8, "little") + gtid.domain.to_bytes(4, "little") + b"\x09" + bytes(6)
    return header + (38).to_bytes(4, "little") + bytes(6) + body


def event(size: int, event_type: int = 2, fill: bytes = b"q") -> bytes:
    """Return an event of *size* bytes; its body means nothing."""
    head = bytes(4) + bytes([event_type]) + (1).to_bytes(4, "little") + size.to_bytes(4, "little")
    return head + bytes(6) + fill * (size - 19)


class BinlogBuilder:
    """
    Builds one binlog; `write` puts it into a directory.

    Args:
        page_size: bytes.
        pages: of each file, the header page counted.
        interval: pages between states; 0: none but on page 1.
        major: format version.
        first: number of the first file.
        states: write state records where they are due.
    """

    def __init__(self, page_size=512, pages=8, interval=2, *, major=1, first=0, states=True):
        self.page_size, self.pages, self.interval = page_size, pages, interval
        self.major, self.first, self.states = major, first, states
        self.files: list[bytearray] = []
        self.full, self.since = BinlogState(), BinlogState()
        self.place = 0
        self.oob_references: dict[int, int] = {}
        self.left_out: set[int] = set()  # pages that get no state though one is due
        self._new_file()

    @property
    def file_no(self):
        return self.first + len(self.files) - 1

    @property
    def position(self):
        return Position(self.file_no, self.place)

    def record(self, record_type, data, gtid=None):
        """Append a record, cut into chunks, with the states that are due in between."""
        start, done, flags = None, 0, 0
        while done < len(data):
            self.prepare_page()
            room = self.room - 3
            if start is None:
                start = self.position
                if gtid is not None:
                    self.full.update(gtid)
                    self.since.update(gtid)
            part = data[done : done + room]
            done += len(part)
            self.chunk(record_type | flags | (LAST if done == len(data) else 0), part)
            flags = CONTINUATION
        return start

    def commit(self, gtid, *events, lists=()):
        """Append a commit record."""
        prefix = encode_commit_prefix(lists, self.major)
        data = prefix + gtid_event(gtid) + b"".join(events)
        return self.record(RecordType.COMMIT, data, gtid)

    def oob(self, forest: OobForest, piece):
        """Append a piece and tell its forest."""
        header = forest.next_node()
        position = self.record(RecordType.OOB, encode_oob_header(header) + piece)
        forest.add(position)
        return position

    @property
    def room(self):
        """Bytes left in the page that is begun."""
        return self.page_size - 4 - self.place % self.page_size

    def prepare_page(self):
        """Make sure that a chunk fits here, behind the state that is due, if any."""
        state_done = False
        while True:
            if self.room < 4:
                self.bytes(b"\xff" * self.room)
            if self.place % self.page_size:
                return
            page = self.place // self.page_size
            if page == self.pages:
                self._new_file()
                page, state_done = 1, False
            entries = self._due(page)
            if entries is None or state_done:
                return
            self.state(entries)
            state_done = True

    def _due(self, page):
        """Return the entries of the state that is due on a page, or None."""
        entries = None
        if page == 1:
            self.since = BinlogState()
            entries = self.full.entries()
        elif self.interval and page % self.interval == 0:
            entries = self.since.entries()
        if entries is None or not self.states or page in self.left_out:
            return None
        needed = -(-len(encode_state(entries, None, self.major)) // (self.page_size - 4))
        return entries if page + needed < self.pages else None

    def state(self, entries):
        """Put a state record here."""
        data, flags = encode_state(entries, None, self.major), 0
        while data:
            part, data = data[: self.room - 3], data[self.room - 3 :]
            self.chunk(RecordType.GTID_STATE | flags | (0 if data else LAST), part)
            flags = CONTINUATION

    def chunk(self, type_byte, data):
        """Put one chunk here."""
        assert 3 + len(data) <= self.room
        self.bytes(bytes([type_byte]) + len(data).to_bytes(2, "little") + data)

    def bytes(self, data):
        """Put bytes here; a page that is full is left."""
        self.files[-1][self.place : self.place + len(data)] = data
        self.place += len(data)
        if self.room == 0:
            self.place += 4

    def fill_file(self):
        """Take the rest of the file with padding, as a flush does, and cut it there."""
        if self.place % self.page_size:
            if self.room >= 4:
                self.chunk(0x44, b"\xff" * (self.room - 3))
            else:
                self.bytes(b"\xff" * self.room)
        del self.files[-1][self.place :]
        self._new_file()

    def write(self, path: Path, *, empty_next=True):
        """Write all files, and an empty one behind them."""
        for index, image in enumerate(self.files):
            number = self.first + index
            header = FileHeader(
                file_no=number,
                page_size=self.page_size,
                page_count=self.pages,
                lsn=1000 + number,
                state_interval=self.interval,
                oob_reference=self.oob_references.get(number, self.first),
                major=self.major,
            )
            image[: self.page_size] = header.encode()
            for start in range(self.page_size, len(image), self.page_size):
                page = bytearray(image[start : start + self.page_size])
                if any(page):
                    seal_page(page)
                    image[start : start + self.page_size] = page
            (path / binlog_name(number)).write_bytes(image)
        if empty_next:
            name = binlog_name(self.first + len(self.files))
            (path / name).write_bytes(bytes(self.page_size * self.pages))
        return path

    def _new_file(self):
        self.files.append(bytearray(self.page_size * self.pages))
        self.place = self.page_size


def reseal(path: Path, offset: int, data: bytes, page_size: int) -> None:
    """Change bytes of a file and make the page's checksum right again."""
    image = bytearray(path.read_bytes())
    image[offset : offset + len(data)] = data
    start = offset - offset % page_size
    page = image[start : start + page_size]
    seal_page(page)
    image[start : start + page_size] = page
    path.write_bytes(image)
