"""
A whole binlog read in the plainest way: all of it in memory, every rule of the format checked.

Written from the description of the format alone, sharing nothing with the program, so that the
two can be held against each other.
"""

from collections.abc import Mapping
from typing import NamedTuple

from .chunks import (
    COMMIT,
    DUMMY,
    GTID_STATE,
    OOB,
    XA_COMPLETE,
    XA_PREPARE,
    Chunk,
    Record,
    cut,
    join,
)
from .contents import (
    Commit,
    Gtid,
    Node,
    State,
    Xa,
    parse_commit,
    parse_node,
    parse_state,
    parse_xa_complete,
    parse_xa_prepare,
)
from .fields import DamageError
from .files import BinlogFile, Image, Place, read_file
from .trees import PlacedNode, collect


class Problem(NamedTuple):
    """Something that the format forbids."""

    place: Place
    what: str


class Group(NamedTuple):
    """A committed event group, or a format description (*gtid* None)."""

    gtid: Gtid | None
    place: Place
    end: Place
    head: bytes
    nodes: tuple[PlacedNode, ...]
    data: bytes


class Binlog:
    """
    What the files hold. Of what is damaged as much is there as could be read.

    Attributes:
        files: those that have a header, by number.
        end: where the data ends.
        chunks: all, in order.
        records: all, in the order in which they begin; those nested in others too.
        groups, descriptions: commit records with and without a GTID.
        states, nodes, prepares, completes: the contents of such records by place.
        problems: everything that the format forbids.
    """

    def __init__(self, images: Mapping[int, Image]) -> None:
        self.problems: list[Problem] = []
        self.files: dict[int, BinlogFile] = {}
        self.chunks: list[Chunk] = []
        self.end = Place(0, 0)
        self._read_files(images)
        begins_inside = bool(self.files) and min(self.files) > 0
        self.records = join(self.chunks, self._report, begins_inside=begins_inside)
        self.groups: list[Group] = []
        self.descriptions: list[Group] = []
        self.commits: dict[Place, Commit] = {}
        self.states: dict[Place, State] = {}
        self.nodes: dict[Place, Node] = {}
        self.prepares: dict[Place, Xa] = {}
        self.completes: dict[Place, Xa] = {}
        for record in self.records:
            if record.is_whole:
                try:
                    self._take(record)
                except DamageError as error:
                    self._report(record.place, str(error))

    def _report(self, place: Place, what: str) -> None:
        self.problems.append(Problem(place, what))

    def _read_files(self, images: Mapping[int, Image]) -> None:
        for number in sorted(images):
            try:
                file = read_file(images[number], number)
            except DamageError as error:
                self._report(Place(number, 0), str(error))
                return
            if file is None:
                if number != max(images):
                    self._report(Place(number, 0), "empty file before the last")
                continue
            if self.files and self.end != Place(number - 1, self._size(number - 1)):
                self._report(self.end, f"data ends here and goes on in file {number}")
            self.files[number] = file
            if file.has_partial_page:
                self._report(Place(number, 0), "part of a page at the end")
            if file.pages > file.header.page_count:
                self._report(Place(number, 0), f"{file.pages} pages, more than the header says")
            chunks, self.end = cut(file, self._report)
            self.chunks += chunks

    def _size(self, number: int) -> int:
        return (
            self.files[number].pages * self.files[number].page_size if number in self.files else 0
        )

    def _take(self, record: Record) -> None:
        place, data = record.place, record.data
        file = self.files[place.file_no]
        if record.type == COMMIT:
            self._take_commit(record, parse_commit(data, file.header.major))
        elif record.type == GTID_STATE:
            self.states[place] = parse_state(data, file.header.major)
        elif record.type == OOB:
            self.nodes[place] = parse_node(data)
        elif record.type == DUMMY:
            if len(record.chunks) > 1 or record.end.offset % file.page_size != file.end:
                self._report(place, "dummy record that does not fill its page")
            if data.strip(b"\xff"):
                self._report(place, f"dummy record of {data[:8].hex()}")
        elif record.type == XA_PREPARE and file.header.major:
            self.prepares[place] = parse_xa_prepare(data)
        elif record.type == XA_COMPLETE and file.header.major:
            self.completes[place] = parse_xa_complete(data)
        else:
            self._report(place, f"record of unknown type {record.type}")

    def _take_commit(self, record: Record, commit: Commit) -> None:
        self.commits[record.place] = commit
        nodes: list[PlacedNode] = []
        for reference in commit.lists:
            if not reference.last < record.place:
                raise DamageError(f"out-of-band records at {reference.last}, behind this commit")
            nodes += collect(self.nodes, reference)
        head = commit.payload[: int.from_bytes(commit.payload[9:13], "little")]
        data = b"".join((commit.payload, *(placed.node.piece for placed in nodes)))
        if nodes and len(head) != len(commit.payload):
            self._report(record.place, "events in a commit record that has out-of-band records")
        group = Group(commit.gtid, record.place, record.end, head, tuple(nodes), data)
        (self.descriptions if commit.gtid is None else self.groups).append(group)
