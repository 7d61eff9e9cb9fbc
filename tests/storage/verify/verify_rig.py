"""Small binlogs to be damaged, and what the check says of them."""

import hashlib
from typing import NamedTuple

from ibb.protocol.errors import FormatError
from ibb.protocol.gtid import Gtid
from ibb.storage import StoreOptions
from ibb.storage.directory import BinlogDirectory
from ibb.storage.file_name import binlog_name
from ibb.storage.group_reader import GroupReader
from ibb.storage.oob_forest import OobForest
from ibb.storage.os_disk import OsDisk
from ibb.storage.position import Position
from ibb.storage.record import RecordType
from ibb.storage.verify import Totals, verify_directory
from ibb.storage.verify.finding import NOTHING

from ..binlog_builder import BinlogBuilder, event, reseal
from ..events import transaction
from .both_ways import both_ways

SIZE = 512  # bytes a page
SPARE_HEAD = bytes(5)  # of a piece that is the first of its group
SMALL = StoreOptions(
    page_size=512,
    max_binlog_size=16 * 512,
    state_interval=1024,
    redo_segment_size=256 << 10,
    oob_piece_size=700,
    fifo_pages_max=8,
    background=False,
)


def numbered(seq):
    return Gtid(0, 1, seq)


class Binlog:
    """A directory made by hand, where its groups are, and ways to change its bytes."""

    def __init__(self, path, **shape):
        self.path = path
        self.builder = BinlogBuilder(**({"page_size": SIZE, "pages": 8, "interval": 2} | shape))
        self.places = {}  # sequence number -> where the commit record begins
        self.nodes = []  # where out-of-band records are
        self.spare_place = None  # where the piece of no group is

    def groups(self, count, size=200):
        """Append groups in domain 0."""
        for _ in range(count):
            seq = len(self.places) + 1
            self.places[seq] = self.builder.commit(numbered(seq), event(size))
        return self

    def large_group(self, sizes=(20, 30, 400, 10, 10)):
        """Append a group in pieces: one query event of their lengths together."""
        forest, data = OobForest(), event(sum(sizes))
        for size in sizes:
            self.nodes.append(self.builder.oob(forest, data[:size]))
            data = data[size:]
        seq = len(self.places) + 1
        reference = forest.reference()
        self.places[seq] = self.builder.commit(numbered(seq), lists=[reference])
        return self

    def spare(self, size):
        """Append a piece that belongs to no group; remember where it is."""
        self.spare_place = self.builder.record(RecordType.OOB, SPARE_HEAD.ljust(size, b"s"))
        return self

    def write(self, **how):
        self.builder.write(self.path, **how)
        return self

    def file(self, file_no):
        return self.path / binlog_name(file_no)

    def sealed(self, position, data):
        """Change bytes and make the page's checksum right again."""
        reseal(self.file(position.file_no), position.offset, data, SIZE)

    def raw(self, position, data):
        """Change bytes and nothing else."""
        image = bytearray(self.file(position.file_no).read_bytes())
        image[position.offset : position.offset + len(data)] = data
        self.file(position.file_no).write_bytes(image)

    def instead(self, place, size, *chunks):
        """Put chunks, (type byte, contents), where *size* bytes of others were in a page."""
        data = b""
        for type_byte, contents in chunks:
            data += bytes([type_byte]) + len(contents).to_bytes(2, "little") + contents
        rest = size - len(data) - 3
        assert rest > len(SPARE_HEAD)
        data += b"\x43" + rest.to_bytes(2, "little") + SPARE_HEAD.ljust(rest, b"s")
        self.sealed(place, data)

    def header(self, file_no, offset, data):
        """Change a header field and make the header's checksum right again."""
        self.sealed(Position(file_no, offset), data)

    def swap_pages(self, file_no, first, second):
        image = bytearray(self.file(file_no).read_bytes())
        one, other = (slice(page * SIZE, (page + 1) * SIZE) for page in (first, second))
        image[one], image[other] = image[other], image[one]
        self.file(file_no).write_bytes(image)


class Report(NamedTuple):
    """All that a finding says."""

    kind: str
    file: str | None
    page: int | None
    offset: int | None
    lost: str
    text: str


def report_at(kind, place, text, lost=NOTHING):
    """Return the report of a finding at a byte."""
    return Report(*at(kind, place, lost), text)


def report_of(kind, file, text, lost=NOTHING, *, page=None):
    """Return the report of a finding about a file or a whole page of it."""
    return Report(kind, file, page, None, lost, text)


def reports(path):
    """Return what the check says of a directory, which it must not change, word by word."""
    return [
        Report(str(one.kind), one.file, one.page, one.offset, one.lost, one.text)
        for one in findings(path)
    ]


def findings(path):
    """Return everything that the check says, both ways, which must not change the directory."""
    before = digest(path)
    found = both_ways(OsDisk(), str(path)).findings
    assert digest(path) == before
    return found


def told(path):
    """Return (kind, file number, page, offset, lost) of each finding."""
    return [one[:-1] for one in reports(path)]


def at(kind, place, lost=NOTHING):
    """Return what `told` has for a finding at a byte."""
    page, offset = divmod(place[1], SIZE)
    return (kind, binlog_name(place[0]), page, offset, lost)


def totals(path):
    found = Totals()
    list(verify_directory(OsDisk(), str(path), totals=found))
    return found


def digest(path):
    """Return a hash of all names and contents in a directory."""
    hashes = hashlib.sha256()
    for file in sorted(path.iterdir()):
        hashes.update(file.name.encode() + b"\0" + hashlib.sha256(file.read_bytes()).digest())
    return hashes.hexdigest()


def groups_of(path, file_no):
    """
    Return the sequence numbers of the groups that begin in a file.

    The last one may go on in the next file: if that is damaged, it is left out. Raise FormatError
    if it is the fault of the file itself.
    """
    source = BinlogDirectory(OsDisk(), str(path))
    reader, found = GroupReader(source, Position(file_no, 0)), []
    try:
        while (group := reader.next()) is not None and group.position.file_no == file_no:
            b"".join(group.pieces())
            found.append(group.gtid.seq)
    except FormatError as error:
        if error.file == binlog_name(file_no):
            raise
    finally:
        source.close()
    return found


def publish(store, number, size=0, domain=0):
    """Commit a transaction of about *size* bytes, if that is more than its least."""
    with store.begin() as group:
        group.write(transaction(f"insert {number}", size))
        group.commit(Gtid(domain, 1, number))
