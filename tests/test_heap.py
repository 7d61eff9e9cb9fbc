"""Memory that lies free in the C library's heap, given back to the system."""

import gc
import os
import platform
import re
import subprocess
import sys
import weakref
from pathlib import Path

import pytest

from ibb.heap import ARROW_HEAP, DELTA_HEAP, keep_what_is_there, malloc_trim


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library")
def test_the_c_library_gives_back_what_lies_free():
    def anonymous():
        lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("Anonymous:"))

    blocks = [bytes(16_000) for _ in range(4_000)]  # below what is mapped by itself
    kept, full = blocks[-1], anonymous()
    del blocks
    gc.collect()
    malloc_trim()()
    assert full - anonymous() > 32_000  # KiB, of 62,500
    assert len(kept) == 16_000


def options_of_delta_heap(**environment):
    """Return how the heap of delta-rs is in a program that keeps change tables."""
    program = (
        "import os; from ibb.heap import DELTA_HEAP, keep_heaps_small\n"
        "keep_heaps_small(); os.environ[DELTA_HEAP] += ',stats_print:true'\n"
        "import deltalake"
    )
    kept = {name: value for name, value in os.environ.items() if name != DELTA_HEAP}
    command = [sys.executable, "-c", program]
    done = subprocess.run(
        command, env=kept | environment, capture_output=True, text=True, timeout=60, check=True
    )
    lines = [line.split(": ") for line in done.stderr.splitlines() if "opt." in line]
    return {line[0].strip(): line[1].split()[0] for line in lines if len(line) > 1}


def test_the_heap_of_delta_rs_is_kept_small_unless_told_otherwise():
    small = options_of_delta_heap()
    assert (small["opt.narenas"], small["opt.tcache"]) == ("2", "false")
    assert (small["opt.dirty_decay_ms"], small["opt.muzzy_decay_ms"]) == ("200", "0")
    told = options_of_delta_heap(**{DELTA_HEAP: "narenas:3"})
    assert (told["opt.narenas"], told["opt.tcache"]) == ("3", "true")


def heap_of_arrow(**environment):
    """Return which heap Arrow has in a program that keeps change tables."""
    program = (
        "from ibb.heap import keep_heaps_small\nkeep_heaps_small()\n"
        "import pyarrow; print(pyarrow.default_memory_pool().backend_name)"
    )
    kept = {name: value for name, value in os.environ.items() if name != ARROW_HEAP}
    command = [sys.executable, "-c", program]
    return subprocess.check_output(command, env=kept | environment, text=True, timeout=60).strip()


def test_arrow_has_the_c_librarys_heap_unless_told_otherwise():
    assert heap_of_arrow() == "system"
    assert heap_of_arrow(**{ARROW_HEAP: "mimalloc"}) == "mimalloc"


@pytest.fixture
def collector():
    """Have Python look for garbage as before when the test is over."""
    threshold = gc.get_threshold()
    yield
    gc.unfreeze()
    gc.set_threshold(*threshold)


class Node:
    """Something that may be part of a circle."""


def test_what_was_there_is_not_looked_through_and_what_comes_is(collector):
    there = Node()
    keep_what_is_there()
    assert gc.get_freeze_count() > 1000
    looked_through = {id(one) for one in gc.get_objects()}
    assert id(there) not in looked_through
    circle = Node()
    circle.itself = circle
    gone = weakref.ref(circle)
    del circle
    gc.collect()
    assert gone() is None


SERVING = """
import asyncio, gc, os, signal, sys
from ibb.server.config import Config
from ibb.server.service import serve

def tell(server):
    print("frozen", gc.get_freeze_count())
    os.kill(os.getpid(), signal.SIGTERM)

asyncio.run(serve(sys.argv[1], Config(listen="127.0.0.1:0"), tell))
"""


def test_a_server_that_has_begun_is_not_looked_through(tmp_path):
    command = [sys.executable, "-c", SERVING, str(tmp_path / "store")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    (frozen,) = re.findall(r"^frozen (\d+)$", done.stdout, re.MULTILINE)
    assert int(frozen) > 10_000
