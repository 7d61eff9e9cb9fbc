"""Memory in large pages is zero, one's own, and there on systems that have none."""

import ctypes
import mmap
import platform
from pathlib import Path

import pytest

from ibb.storage import large_memory
from ibb.storage.large_memory import LARGE_PAGE_BYTES


def address(memory):
    return ctypes.addressof(ctypes.c_char.from_buffer(memory))


@pytest.mark.parametrize("size", [1, 4096, LARGE_PAGE_BYTES, 2 * LARGE_PAGE_BYTES + 5])
def test_it_is_zero_and_ends_where_it_was_asked_to(size):
    first, second = large_memory.large_memory(size), large_memory.large_memory(size)
    assert len(first) == len(second) == size
    assert first == bytes(size)
    first[:] = b"x" * size
    assert second == bytes(size)


@pytest.mark.skipif(platform.system() != "Linux", reason="no large pages")
def test_it_begins_where_a_large_page_does():
    assert address(large_memory.large_memory(10)) % LARGE_PAGE_BYTES == 0


def test_it_goes_with_its_last_view():
    def size():
        return int(Path("/proc/self/statm").read_text().split()[0]) * mmap.PAGESIZE

    before = size()
    memory = large_memory.large_memory(64 << 20)
    part = memory[:1]
    del memory
    assert size() >= before + (64 << 20)
    part[0] = 1
    del part
    assert size() < before + (32 << 20)


def test_a_system_without_large_pages_gives_others(monkeypatch):
    monkeypatch.delattr(mmap, "MADV_HUGEPAGE", raising=False)
    memory = large_memory.large_memory(5000)
    memory[4999] = 7
    assert bytes(memory) == bytes(4999) + b"\7"


def test_a_kernel_that_refuses_gives_others(monkeypatch):
    class Refusing(mmap.mmap):
        def madvise(self, *_):
            raise OSError(22, "no")

    monkeypatch.setattr(mmap, "mmap", Refusing)
    assert bytes(large_memory.large_memory(5000)) == bytes(5000)


def test_a_process_that_may_not_map_more_has_other_memory(monkeypatch):
    def refuse(*_, **__):
        raise OSError(12, "no")

    monkeypatch.setattr(mmap, "mmap", refuse)
    assert bytes(large_memory.large_memory(5000)) == bytes(5000)
