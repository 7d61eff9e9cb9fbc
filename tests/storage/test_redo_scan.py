"""What may be a redo group at its own LSN is found, and nothing else."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ibb.storage import redo_segment
from ibb.storage.redo_record import MAGIC, Change, encode_group
from ibb.storage.redo_scan import find_due

from ..faults.sim_disk import SimDisk

pytestmark = pytest.mark.kernel

LSN = 1 << 40
SYNCED = (LSN - 1, LSN, LSN + 1, LSN + 2, LSN + 3, LSN + 500)  # heads say LSN + 2
PIECES = st.lists(
    st.sampled_from((MAGIC, b"R", b"Rd", b"old", bytes(30), MAGIC * 8)) | st.binary(max_size=9)
)


def head(lsn, synced):
    return MAGIC + struct.pack("<IQQ", 7, lsn, synced)


def wanted(data, first, lsn, synced):
    for at in range(first, len(data) - 23):
        found, says = struct.unpack_from("<QQ", data, at + 8)
        if data.startswith(MAGIC, at) and found == lsn + at and says > synced:
            return at
    return -1


@given(PIECES, PIECES, st.sampled_from(SYNCED), st.integers(0, 60))
def test_it_is_found_wherever_it_is(before, behind, synced, first):
    start = b"".join(before)
    for shift in (0, 1, -8):  # two of them lie elsewhere
        data = start + head(LSN + len(start) + shift, LSN + 2) + b"".join(behind)
        assert find_due(data, first, LSN, synced) == wanted(data, first, LSN, synced)


@given(st.integers(0, 100), st.integers(0, 40))
def test_a_group_that_is_cut_in_its_head_is_none(place, size):
    group = encode_group(LSN + place, LSN + 1, [Change(1, 2, 3, b"data")])[:size]
    found = find_due(bytes(place) + group, 0, LSN, LSN)
    assert found == (place if len(group) >= 24 else -1)


def test_nothing_is_found_in_nothing():
    assert find_due(b"", 0, LSN, 0) == -1
    assert find_due(head(LSN, LSN), 1, LSN, 0) == -1
    assert find_due(head(LSN, LSN), 99, LSN, 0) == -1


@pytest.mark.parametrize("lsn", [(1 << 64) - 1, (1 << 64) - 5000])
def test_behind_the_last_lsn_that_there_can_be_is_nothing(lsn):
    """The header of a segment may say anything; nothing in it is damaged by that."""
    disk = SimDisk()
    file = disk.open("/log", create=True)
    file.write_at(0, bytes(8192) + head(lsn, lsn) + bytes(3 << 20))
    assert redo_segment._damage(file, "/log", 4096, lsn) is None
