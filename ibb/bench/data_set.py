"""
What is served and ingested: the same groups as mariadbd's binlog, as `.ibb` files, and as a stream.

A data set is made once and kept as long as the folder is; a file of facts, written last, says that
it is whole and what a reader of it must get.
"""

from __future__ import annotations

import json
import mmap
import os
import shutil
import struct
import zlib
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Final

from ibb.protocol.event import EventType, build_event, with_checksum
from ibb.protocol.format_description import FormatDescription
from ibb.protocol.gtid import Gtid
from ibb.protocol.gtid_list import GtidList
from ibb.protocol.packet import frame_all
from ibb.protocol.rotate import Rotate
from ibb.storage import Store, StoreOptions

from .errors import BenchError
from .events import (
    DOMAIN,
    SERVER_ID,
    TIMESTAMP,
    GroupTemplate,
    Piece,
    bulk_group,
    huge_group,
    one_row_group,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from ibb.storage.group_writer import GroupWriter

LEGACY_MAGIC: Final = b"\xfebin"
LEGACY_NAME: Final = "binlog.000001"
LEGACY_START: Final = len(LEGACY_MAGIC)  # where its first event is
LEGACY_BYTES_MAX: Final = 4 << 30  # positions in it have 32 bits
SERVER_VERSION: Final = "10.11.6-MariaDB-log"
FACTS_NAME: Final = "facts.json"
_FORM: Final = 1  # of what is made here; another number makes everything anew
_LENGTH_AT: Final = 9
_CRC: Final = struct.Struct("<I")
_PLACE: Final = struct.Struct("<II")  # length and log_pos in an event's header
_PACKET: Final = struct.Struct("<IB")  # length and sequence id, then the status byte
STREAM_FIRST_SEQ: Final = 3  # behind the two packets of `stream_head`
_HASH_START: Final = 0xCBF29CE484222325
_HASH_FACTOR: Final = 0x100000001B3
_HASH_MASK: Final = (1 << 64) - 1
_PROGRESS_EVERY: Final = 256  # pieces
_READ_BYTES: Final = 1 << 20


@dataclass(frozen=True)
class Facts:
    """
    What a reader of a data set must get.

    Attributes:
        groups: how many; their numbers are 1 to that.
        events: of them.
        size: bytes of the events as sent, with checksums.
        content: CRC-32 of the events as stored.
        shape: hash of types and lengths as sent, as `reader.c` has it.
    """

    groups: int
    events: int
    size: int
    content: int
    shape: int

    @property
    def last(self) -> Gtid:
        """The newest group."""
        return Gtid(DOMAIN, SERVER_ID, self.groups)


@dataclass(frozen=True)
class Recipe:
    """
    How a data set is made.

    Args:
        kind: `bulk` rows, `one-row` transactions, `mixed`, or one `huge` group.
        size: bytes, about.
        file_bytes: of each `.ibb` file.
    """

    kind: str
    size: int
    file_bytes: int = 1 << 30

    @property
    def name(self) -> str:
        """The folder's."""
        return f"{self.kind}-{self.size}-{self.file_bytes}-{_FORM}"

    def groups(self) -> Iterator[Iterable[Piece]]:
        """Yield the pieces of each group."""
        if self.kind == "huge":
            yield huge_group(1, self.size)
            return
        templates = {
            "bulk": [bulk_group()],
            "one-row": [one_row_group()],
            "mixed": [one_row_group()] * 20 + [bulk_group(64 << 10)] * 4 + [bulk_group()],
        }[self.kind]
        seq = done = 0
        while done < self.size:
            piece = templates[seq % len(templates)].piece(seq + 1)
            seq += 1
            done += len(piece.data)
            yield (piece,)


@dataclass(frozen=True)
class DataSet:
    """A data set that is there, made by *recipe*: *folder* holds `ibb/` and `mariadb/`."""

    folder: Path
    recipe: Recipe
    facts: Facts

    @property
    def store(self) -> Path:
        """The directory of `.ibb` files."""
        return self.folder / "ibb"

    @property
    def legacy(self) -> Path:
        """The binlog file of a mariadbd."""
        return self.folder / "mariadb" / LEGACY_NAME

    def warm(self) -> None:
        """Have its files in the page cache, as far as there is room for them."""
        buffer = bytearray(_READ_BYTES)
        for path in (path for path in self.folder.rglob("*") if path.is_file()):
            with path.open("rb", buffering=0) as file:
                while file.readinto(buffer):
                    pass

    def stream(self) -> Path:
        """Return the file of packets that a primary would send, made when first asked for."""
        path = self.folder / "stream"
        if not path.exists():
            unfinished = self.folder / "stream.unfinished"
            with unfinished.open("wb") as out:
                for part in _packets(self.legacy):
                    out.write(part)
            unfinished.replace(path)
        return path


def data_set(
    recipe: Recipe, folder: Path, progress: Callable[[float], None] = lambda _: None
) -> DataSet:
    """
    Return the data set in *folder*, made if it is not there.

    Args:
        recipe: what.
        folder: where data sets are kept.
        progress: told the share that is done, 0 to 1.

    Raises:
        BenchError: the disk has no room for it.
    """
    place = folder / recipe.name
    facts = place / FACTS_NAME
    if facts.exists():
        return DataSet(place, recipe, Facts(**json.loads(facts.read_text())))
    shutil.rmtree(place, ignore_errors=True)
    free, wanted = shutil.disk_usage(folder).free, recipe.size * 5 // 2
    if free < wanted:
        raise BenchError(
            f"{folder} has {free >> 20} MiB free, {recipe.kind} data want {wanted >> 20}"
        )
    place.mkdir(parents=True)
    made = DataSet(place, recipe, _make(recipe, place, progress))
    facts.write_text(json.dumps(asdict(made.facts)))
    return made


class _Counter:
    """Gathers the facts of what passes."""

    def __init__(self) -> None:
        self.groups = self.events = self.size = self.content = 0
        self.shape = _HASH_START

    def add(self, piece: Piece) -> None:
        begun, shape, data = 0, self.shape, piece.data
        for end in piece.ends:
            size = end - begun + _CRC.size
            shape = (shape ^ (size << 8 | data[begun + 4])) * _HASH_FACTOR & _HASH_MASK
            self.size += size
            begun = end
        self.shape = shape
        self.events += len(piece.ends)
        self.content = zlib.crc32(data, self.content)

    def facts(self) -> Facts:
        return Facts(self.groups, self.events, self.size, self.content, self.shape)


def _make(recipe: Recipe, place: Path, progress: Callable[[float], None]) -> Facts:
    counter, pieces = _Counter(), 0
    (place / "mariadb").mkdir()
    options = StoreOptions(
        max_binlog_size=recipe.file_bytes,
        flush_log_at_commit=0,
        server_id=SERVER_ID,
        server_version=SERVER_VERSION,
    )
    with (
        (place / "mariadb" / LEGACY_NAME).open("wb") as file,
        Store.open(place / "ibb", options) as store,
    ):
        position = file.write(_legacy_head())
        for group in recipe.groups():
            counter.groups += 1
            with store.begin() as writer:
                for piece in group:
                    counter.add(piece)
                    writer.write(piece.data)
                    position = _write_legacy(file.write, piece, position)
                    pieces += 1
                    if not pieces % _PROGRESS_EVERY:
                        progress(min(1.0, counter.size / recipe.size))
                _commit(writer, counter.groups)
        file.write(
            _placed(
                build_event(EventType.STOP, b"", timestamp=TIMESTAMP, server_id=SERVER_ID), position
            )
        )
        file.flush()
        os.fsync(file.fileno())
        store.sync()
    return counter.facts()


def _commit(writer: GroupWriter, seq: int) -> None:
    writer.commit(Gtid(DOMAIN, SERVER_ID, seq), wait=False)


def _legacy_head() -> bytes:
    described = FormatDescription.default(SERVER_VERSION, SERVER_ID, TIMESTAMP).to_wire(1)
    described = _placed(described[:-4], LEGACY_START)
    at = len(LEGACY_MAGIC) + len(described)
    before = GtidList((), TIMESTAMP, SERVER_ID).encode()
    return LEGACY_MAGIC + described + _placed(before, at)


def _placed(event: bytes, begun: int) -> bytes:
    """Return an event with its place in the file and its checksum."""
    out = bytearray(event)
    size = len(out) + _CRC.size
    _PLACE.pack_into(out, _LENGTH_AT, size, begun + size)
    return bytes(out) + _CRC.pack(zlib.crc32(out))


def _write_legacy(write: Callable[[bytes], int], piece: Piece, position: int) -> int:
    """Write the events of a piece with their places and checksums; return where they end."""
    data, begun = bytearray(piece.data), 0
    parts: list[bytes | memoryview] = []
    crc32, pack, place = zlib.crc32, _CRC.pack, _PLACE.pack_into
    view = memoryview(data)
    for end in piece.ends:
        size = end - begun + 4
        position += size
        place(data, begun + _LENGTH_AT, size, position)
        event = view[begun:end]
        parts += (event, pack(crc32(event)))
        begun = end
    if position >= LEGACY_BYTES_MAX:
        raise BenchError(f"a binlog of mariadbd holds {LEGACY_BYTES_MAX >> 30} GiB at most")
    write(b"".join(parts))
    return position


def _packets(legacy: Path) -> Iterator[bytes]:
    """Yield the groups of a binlog file as packets of a dump, numbered from 3 on."""
    with legacy.open("rb") as file:
        data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    at, seq = LEGACY_START, STREAM_FIRST_SEQ
    parts: list[bytes] = []
    while at < len(data):
        (size,) = _CRC.unpack_from(data, at + _LENGTH_AT)
        code = data[at + 4]
        if code not in (EventType.FORMAT_DESCRIPTION, EventType.GTID_LIST, EventType.STOP):
            parts += (_PACKET.pack(size + 1 | seq << 24, 0), data[at : at + size])
            seq = (seq + 1) % 256
        at += size
        if len(parts) >= 2 * _PROGRESS_EVERY:
            yield b"".join(parts)
            parts.clear()
    yield b"".join(parts)


def packet_bytes(template: GroupTemplate) -> int:
    """Return the bytes that a group takes in a stream: checksums and packet headers included."""
    return len(template.piece(1).data) + len(template.ends) * (_CRC.size + _PACKET.size)


def stream_head(name: str = "bench-bin.000001") -> bytes:
    """Return the two packets before a stream: a fake Rotate and the format description."""
    rotate = with_checksum(Rotate.fake(name, SERVER_ID).encode())
    described = FormatDescription.default(SERVER_VERSION, SERVER_ID, TIMESTAMP).to_wire(1)
    data, seq = frame_all([b"\0" + rotate, b"\0" + described], 1)
    assert seq == STREAM_FIRST_SEQ
    return data
