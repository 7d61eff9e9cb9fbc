"""Memory that lies free in the C library's heap, given back to the system."""

import gc
import platform
from pathlib import Path

import pytest

from ibb.heap import malloc_trim


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
