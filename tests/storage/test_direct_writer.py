"""Large writes go past the page cache where that can be, and are the same where it cannot."""

import errno
import os
import random
from pathlib import Path

import pytest

from ibb.storage.direct_writer import DIRECT_BYTES_MIN, STAGE_BYTES
from ibb.storage.disk import BLOCK_BYTES
from ibb.storage.errors import DiskError
from ibb.storage.os_disk import OsDisk
from ibb.storage.position import Position
from ibb.storage.redo import RedoLog
from ibb.storage.redo_record import Change, group_size
from ibb.storage.redo_segment import FIRST_LSN

LARGE = os.urandom(DIRECT_BYTES_MIN)


@pytest.fixture
def file(tmp_path):
    with_room = OsDisk().open(f"{tmp_path}/f", create=True)
    with_room.bypass_cache()
    yield with_room
    with_room.close()


@pytest.fixture
def direct(monkeypatch, tmp_path):
    """Return the sizes of writes past the cache; skip where the file system has none."""
    try:
        os.close(os.open(tmp_path / "tried", os.O_CREAT | os.O_WRONLY | os.O_DIRECT))
    except OSError:
        pytest.skip("this file system has no writes past its cache")
    sizes, real, opened = [], os.pwrite, os.open
    descriptors = set()

    def noting_open(path, flags, *args, **named):
        descriptor = opened(path, flags, *args, **named)
        (descriptors.add if flags & os.O_DIRECT else descriptors.discard)(descriptor)
        return descriptor

    def noting_pwrite(descriptor, data, offset):
        done = real(descriptor, data, offset)
        if descriptor in descriptors:
            sizes.append(done)
        return done

    monkeypatch.setattr(os, "open", noting_open)
    monkeypatch.setattr(os, "pwrite", noting_pwrite)
    return sizes


def pieces(data, rng):
    """Return data in buffers of any kind and size."""
    cut, at = [], 0
    while at < len(data):
        size = rng.choice((1, 7, 4096, 20_000, 300_000))
        part = data[at : at + size]
        cut.append(rng.choice((bytes, bytearray, memoryview))(part))
        at += len(part)
    return [*cut, b""]


@pytest.mark.parametrize("size", [DIRECT_BYTES_MIN, STAGE_BYTES, 3 * STAGE_BYTES + BLOCK_BYTES])
def test_large_writes_of_whole_blocks_go_past_it(file, direct, size):
    rng, data = random.Random(size), os.urandom(size)
    file.write_at(BLOCK_BYTES, pieces(data, rng))
    assert sum(direct) == size
    assert max(direct) <= STAGE_BYTES
    assert file.read_at(0, size + BLOCK_BYTES) == bytes(BLOCK_BYTES) + data
    direct.clear()
    file.write_at(0, [data[:-1], data[-1:]])
    rest = size % STAGE_BYTES
    assert direct == [STAGE_BYTES] * (size // STAGE_BYTES) + ([rest] if rest else [])
    assert file.read_at(0, size) == data
    file.sync()


@pytest.mark.parametrize(
    ("offset", "size"),
    [
        (0, DIRECT_BYTES_MIN - BLOCK_BYTES),
        (0, DIRECT_BYTES_MIN + 1),
        (1, DIRECT_BYTES_MIN),
        (512, 2 * DIRECT_BYTES_MIN),
    ],
)
def test_others_do_not(file, direct, offset, size):
    data = os.urandom(size)
    file.write_at(offset, data)
    assert not direct
    assert file.read_at(offset, size) == data
    file.write_at(0, LARGE)
    assert direct == [len(LARGE)]


def test_nothing_does_unless_it_is_wanted(tmp_path, direct):
    file = OsDisk().open(f"{tmp_path}/other", create=True)
    file.write_at(0, LARGE)
    file.close()
    assert not direct


def test_both_kinds_may_take_turns(file, direct):
    rng, due = random.Random(3), bytearray(STAGE_BYTES)
    file.write_at(0, bytes(due))
    direct.clear()
    for _ in range(200):
        offset, size = rng.randrange(STAGE_BYTES), rng.choice((1, 400, 5000, DIRECT_BYTES_MIN))
        if size == DIRECT_BYTES_MIN:
            offset -= offset % BLOCK_BYTES
        offset = min(offset, STAGE_BYTES - size)
        due[offset : offset + size] = data = rng.randbytes(size)
        file.write_at(offset, [data[:10], data[10:]])
        assert file.read_at(offset, size) == data
    assert file.read_at(0, STAGE_BYTES) == due
    assert len(direct) > 20


@pytest.mark.parametrize(
    "takes", [(0,), (1, 0), (BLOCK_BYTES, STAGE_BYTES), (BLOCK_BYTES + 100, 0), (STAGE_BYTES, 0)]
)
def test_what_the_system_does_not_take_goes_through_it(file, direct, monkeypatch, takes):
    real, through, left = os.pwrite, os.open(file._path, os.O_WRONLY), [*takes]

    def less(descriptor, data, offset):
        size = left.pop(0)
        if not size:
            raise OSError(errno.EINVAL, "its blocks have another size")
        return real(through, data[:size], offset)

    data = os.urandom(2 * STAGE_BYTES)
    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", less)
        file.write_at(0, [data[:100], data[100:]])
    os.close(through)
    assert file.read_at(0, len(data)) == data
    direct.clear()
    file.write_at(0, data[::-1])
    assert file.read_at(0, len(data)) == data[::-1]
    was_refused = takes[-1] == 0 and not left
    assert sum(direct) == (0 if was_refused else len(data))  # who was is not tried again


def test_the_redo_log_writes_so(tmp_path, direct):
    redo = RedoLog(OsDisk(), str(tmp_path), 4 << 20, lambda _: None)
    redo.prepare()
    redo.begin_segment(1, FIRST_LSN, Position(0, 0))
    changes = [Change(0, number, 0, bytes(60_000)) for number in range(6)]
    redo.sync_to(redo.append(changes))
    redo.sync_to(redo.append(changes))
    redo.close()
    assert sum(direct) >= 2 * group_size(changes)


def test_a_file_system_without_such_writes_gets_the_others(file, monkeypatch):
    real, asked = os.open, []

    def refusing(path, flags, *args, **named):
        if flags & os.O_DIRECT:
            asked.append(path)
            raise OSError(errno.EINVAL, "not here")
        return real(path, flags, *args, **named)

    monkeypatch.setattr(os, "open", refusing)
    for _ in range(2):
        file.write_at(0, LARGE)
        assert file.read_at(0, len(LARGE)) == LARGE
    assert len(asked) == 1


def test_a_system_that_knows_nothing_of_them_gets_the_others(tmp_path, monkeypatch):
    monkeypatch.delattr(os, "O_DIRECT")
    file = OsDisk().open(f"{tmp_path}/f", create=True)
    file.bypass_cache()
    file.write_at(0, LARGE)
    assert file.read_at(0, len(LARGE)) == LARGE
    file.close()


@pytest.mark.parametrize("code", [errno.EIO, errno.ENOSPC])
def test_a_failure_says_what_and_where(file, direct, monkeypatch, code):
    real, failures = os.pwrite, [code]

    def failing(descriptor, data, offset):
        if failures:
            raise OSError(failures[0], os.strerror(failures.pop()))
        return real(descriptor, data, offset)

    monkeypatch.setattr(os, "pwrite", failing)
    with pytest.raises(DiskError, match=r"write .*/f.* (No space left|Input/output error)"):
        file.write_at(0, LARGE)
    assert not direct


def test_it_leaves_no_descriptor_behind(tmp_path, direct):
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(3):
        file = OsDisk().open(f"{tmp_path}/f", create=True)
        file.bypass_cache()
        file.write_at(0, LARGE)
        file.close()
        file.close()
    assert len(list(Path("/proc/self/fd").iterdir())) == before
    assert direct == [len(LARGE)] * 3
