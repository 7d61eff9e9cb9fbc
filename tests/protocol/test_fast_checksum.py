"""Kernels' checksums are those that everybody has, with ISA-L and without."""

import random
import subprocess
import sys
import zlib

import pytest

from ibb.protocol import checksum, fast_checksum

pytestmark = pytest.mark.kernel

CHECKED = """
from ibb.protocol import checksum, fast_checksum
fast_checksum.use_tables()
assert not fast_checksum.uses_isa_l()
for size in [*range(70), 508, 16380]:
    data = bytes(place * 7 % 256 for place in range(size))
    assert fast_checksum.crc32(data) == checksum.crc32(data)
    assert fast_checksum.crc32c(data) == checksum.crc32c(data)
"""


def test_the_check_values():
    assert fast_checksum.crc32(b"123456789") == 0xCBF43926
    assert fast_checksum.crc32c(b"123456789") == 0xE3069283


def test_any_bytes():
    rng = random.Random(1)
    for size in [*range(40), 508, 8192, 65532]:
        data = rng.randbytes(size)
        assert fast_checksum.crc32(data) == zlib.crc32(data)
        assert fast_checksum.crc32c(data) == checksum.crc32c(data)


def test_tables_do_the_same():
    subprocess.run([sys.executable, "-c", CHECKED], check=True)
