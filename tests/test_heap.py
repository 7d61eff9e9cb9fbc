"""Memory that lies free in the C library's heap, given back to the system."""

import gc
import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

from ibb.heap import ARROW_HEAP, DELTA_HEAP, malloc_trim


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
