"""Kernels' checksums are those that everybody has, whatever the machine has for them."""

import random
import subprocess
import sys
import zlib
from pathlib import Path

import pytest

from ibb.protocol import checksum, fast_checksum

pytestmark = pytest.mark.kernel

AS_IT_IS = "from ibb.protocol import fast_checksum\n"
TABLES = AS_IT_IS + "fast_checksum.use_tables()\n"
NO_ISA_L = "import sys\nsys.modules['isal.isal_zlib'] = None\n" + AS_IT_IS

CHECKED = """
from ibb.protocol import checksum
assert not fast_checksum.uses_isa_l()
for size in [*range(600), 4097, 16380, 16383]:
    data = bytes(place * 7 % 256 for place in range(size))
    assert fast_checksum.crc32(data) == checksum.crc32(data)
    assert fast_checksum.crc32c(data) == checksum.crc32c(data)
"""

STREAMED = """
import sys
from pathlib import Path
from ibb.protocol.gtid import Gtid
from ibb.storage import Store, StoreOptions
from tests.server.dump.made_streams import assert_same, request
from tests.storage.events import rows_event, xid
with Store.open(Path(sys.argv[1]), StoreOptions(max_binlog_size=1 << 20)) as store:
    for number in range(1, 120):
        with store.begin() as group:
            for size in range(number * 5, number * 5 + 5):
                group.write(rows_event(size))
            group.write(xid(number))
            group.commit(Gtid(0, 1, number), wait=False)
    store.sync()
    assert_same(store, request())
"""


def test_the_check_values():
    assert fast_checksum.crc32(b"123456789") == 0xCBF43926
    assert fast_checksum.crc32c(b"123456789") == 0xE3069283


def test_any_bytes():
    rng = random.Random(1)
    for size in [*range(600), 8192, 65532]:
        data = rng.randbytes(size)
        assert fast_checksum.crc32(data) == zlib.crc32(data)
        assert fast_checksum.crc32c(data) == checksum.crc32c(data)


@pytest.mark.parametrize("way", [TABLES, NO_ISA_L], ids=["tables", "no ISA-L"])
def test_other_ways_do_the_same(way):
    subprocess.run([sys.executable, "-c", way + CHECKED], check=True)


@pytest.mark.parametrize(
    "way", [AS_IT_IS, TABLES, NO_ISA_L], ids=["as it is", "tables", "no ISA-L"]
)
def test_events_of_any_size_are_sent_with_the_right_one(tmp_path, way):
    subprocess.run([sys.executable, "-c", way + STREAMED, tmp_path / "store"], check=True)


def test_what_the_processor_has_is_known():
    lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    flags = next((line.split() for line in lines if line.startswith("flags")), [])
    is_compiled = not fast_checksum.__file__.endswith(".py")
    assert fast_checksum.folds() == (is_compiled and {"pclmulqdq", "sse4_2"} <= set(flags))
    assert fast_checksum.clears() == (is_compiled and "avx" in flags)


def test_a_library_that_computes_something_else_is_not_used(monkeypatch):
    monkeypatch.setattr(checksum, "crc32", lambda _: 0)
    assert fast_checksum.find_isa_l() is None


def test_without_a_library_there_are_tables(monkeypatch):
    monkeypatch.setattr(fast_checksum, "_EXPORTER", "ibb.nothing_of_that_name")
    assert fast_checksum.find_isa_l() is None
