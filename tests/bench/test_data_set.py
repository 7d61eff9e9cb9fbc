"""A data set holds the same groups in each of its forms, and real tools read them."""

import ctypes
import json
import mmap
import os
import subprocess
import sys
import zlib
from types import SimpleNamespace

import pytest

from ibb.bench import data_set as module
from ibb.bench.data_set import Recipe, data_set, packet_bytes, stream_head
from ibb.bench.errors import BenchError
from ibb.bench.events import bulk_group, one_row_group
from ibb.demo.installation import Installation
from ibb.protocol.event import EventHeader, without_checksum
from ibb.protocol.packet import PacketReader
from ibb.storage import Store

from ..integration.waiting import wait_until

SECONDS = 20.0
SIZES = {"one-row": 40_000, "bulk": 1 << 20, "mixed": 40_000, "huge": 3 << 20}


@pytest.fixture(scope="module", params=SIZES)
def made(request, tmp_path_factory):
    return data_set(Recipe(request.param, SIZES[request.param]), tmp_path_factory.mktemp("data"))


def cached(path):
    """Return how much of a file can be read without the disk."""
    with path.open("r+b") as file, mmap.mmap(file.fileno(), 0) as pages:
        told = (ctypes.c_ubyte * -(-len(pages) // mmap.PAGESIZE))()
        begin = ctypes.c_byte.from_buffer(pages)
        failed = ctypes.CDLL(None).mincore(ctypes.byref(begin), ctypes.c_size_t(len(pages)), told)
        del begin
    assert not failed
    return sum(page & 1 for page in told) / len(told)


def forget_cached(path):
    with path.open("rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    return cached(path) < 0.5


def events_of(stored):
    at = 0
    while at < len(stored):
        length = EventHeader.unpack(stored, at).length
        yield stored[at : at + length]
        at += length


def test_store_binlog_and_stream_hold_the_same(made):
    with Store.open(made.store) as store:
        groups = [b"".join(group.pieces()) for group in store.reader() if group.gtid is not None]
    facts = made.facts
    events = [event for group in groups for event in events_of(group)]
    assert (facts.groups, facts.events) == (len(groups), len(events))
    assert facts.content == zlib.crc32(b"".join(groups))
    assert facts.size == sum(map(len, events)) + 4 * len(events)

    packets = PacketReader(1 << 24, 1)
    packets.feed(stream_head() + made.stream().read_bytes())
    sent = []
    while (packet := packets.next_packet()) is not None:
        sent.append(without_checksum(packet.payload[1:]))
    placed = [event[:13] + bytes(4) + event[17:] for event in sent[2:]]
    assert placed == events
    positions = [EventHeader.unpack(event).log_pos for event in sent[2:]]
    assert positions == sorted(set(positions))


def test_a_group_takes_as_many_bytes_of_a_stream_as_said(tmp_path):
    made = data_set(Recipe("one-row", 10_000), tmp_path)
    assert made.stream().stat().st_size == packet_bytes(one_row_group()) * made.facts.groups


def test_what_is_there_is_not_made_again(tmp_path, monkeypatch):
    recipe = Recipe("one-row", 5_000)
    first = data_set(recipe, tmp_path)
    monkeypatch.setattr(module, "_make", None)
    assert data_set(recipe, tmp_path) == first


@pytest.mark.skipif(sys.platform != "linux", reason="asks Linux what it has cached")
def test_files_are_cached_behind_warming(tmp_path):
    made = data_set(Recipe("one-row", 5_000_000, 1 << 20), tmp_path)
    files = [made.legacy, made.stream(), *made.store.glob("*.ibb")]
    wait_until(lambda: all(map(forget_cached, files)), SECONDS)  # the system may have other plans
    made.warm()
    assert min(map(cached, files)) > 0.9


def test_what_was_not_finished_is_made_again(tmp_path):
    recipe = Recipe("one-row", 5_000)
    first = data_set(recipe, tmp_path)
    (first.folder / "facts.json").unlink()
    first.legacy.write_bytes(b"half of it")
    again = data_set(recipe, tmp_path)
    assert again.facts == first.facts
    assert json.loads((again.folder / "facts.json").read_text())["groups"] == first.facts.groups
    assert again.legacy.stat().st_size > 1000


def test_a_disk_without_room_is_refused_at_once(tmp_path, monkeypatch):
    monkeypatch.setattr(module.shutil, "disk_usage", lambda _: SimpleNamespace(free=1000))
    with pytest.raises(BenchError, match="bulk data want"):
        data_set(Recipe("bulk", 1 << 30), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_sizes_are_those_that_servers_write():
    one = one_row_group()
    with_checksums = len(one.piece(1).data) + 4 * len(one.ends)
    assert len(one.ends) == 5
    assert with_checksums / 5 == pytest.approx(104, abs=1)
    bulk = bulk_group()
    rows = [b - a for a, b in zip(bulk.ends[1:], bulk.ends[2:-1], strict=False)]
    assert len(rows) == 128
    assert all(8000 < size <= 8192 for size in rows)


@pytest.mark.live
def test_mariadb_binlog_decodes_every_row(tmp_path):
    made = data_set(Recipe("mixed", 30_000), tmp_path)
    installation = Installation.find()
    assert installation is not None, "run scripts/setup"
    command = installation.command("mariadb-binlog", "-vv", "--verify-binlog-checksum")
    done = subprocess.run([*command, str(made.legacy)], capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    text = done.stdout.decode("latin-1")
    assert text.count("GTID 0-1-") == made.facts.groups
    assert f"@1={made.facts.groups} /* INT" in text
    assert "@2='nnnn" in text
