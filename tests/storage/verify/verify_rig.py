"""Small binlogs to be damaged, and what the check says of them."""

import hashlib

from ibb.protocol.errors import FormatError
from ibb.protocol.gtid import Gtid
from ibb.storage import StoreOptions
from ibb.storage.directory import BinlogDirectory
from ibb.storage.file_name import binlog_name
from ibb.storage.oob import OobForest
from ibb.storage.os_disk import OsDisk
from ibb.storage.position import Position
from ibb.storage.record_reader import RecordReader
from ibb.storage.verify import Totals, verify_directory
from ibb.storage.verify.finding import NOTHING

from ..binlog_builder import BinlogBuilder, event, reseal
from ..events import transaction
from .both_ways import both_ways

SIZE = 512  # bytes a page
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

    def header(self, file_no, offset, data):
        """Change a header field and make the header's checksum right again."""
        self.sealed(Position(file_no, offset), data)

    def swap_pages(self, file_no, first, second):
        image = bytearray(self.file(file_no).read_bytes())
        one, other = (slice(page * SIZE, (page + 1) * SIZE) for page in (first, second))
        image[one], image[other] = image[other], image[one]
        self.file(file_no).write_bytes(image)


def findings(path):
    """Return everything that the check says, both ways, which must not change the directory."""
    before = digest(path)
    found = both_ways(OsDisk(), str(path)).findings
    assert digest(path) == before
    return found


def told(path):
    """Return (kind, file number, page, offset, lost) of each finding."""
    return [
        (
            str(finding.kind),
            finding.file,
            finding.page,
            finding.offset,
            finding.lost,
        )
        for finding in findings(path)
    ]


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


def count_records(path, file_no):
    """Read all records that begin in a file; raise FormatError if it is that file's fault."""
    source = BinlogDirectory(OsDisk(), str(path))
    reader, count = RecordReader(source, Position(file_no, 0)), 0
    try:
        while (record := reader.next()) is not None and record.position.file_no == file_no:
            count += 1
    except FormatError as error:
        if error.file == binlog_name(file_no):
            raise
    return count


def publish(store, number, size=0, domain=0):
    """Commit a transaction of about *size* bytes, if that is more than its least."""
    with store.begin() as group:
        group.write(transaction(f"insert {number}", size))
        group.commit(Gtid(domain, 1, number))
