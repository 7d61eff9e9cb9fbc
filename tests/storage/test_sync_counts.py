"""Mode 0: how often is synced follows from the sizes alone, not from the number of commits."""

from pathlib import Path

import pytest

from ibb.protocol.gtid import Gtid
from ibb.storage import Store, StoreOptions

from ..faults.counting_disk import CountingDisk
from .events import transaction

BYTES = 2 << 20
SYNCS_OF_A_FILE = 3  # made, closed, and once more by a checkpoint


@pytest.mark.parametrize("group_bytes", [300, 3000, 30_000])
def test_commits_of_any_size_cause_the_syncs_of_their_bytes(
    tmp_path: Path, group_bytes: int
) -> None:
    disk = CountingDisk()
    options = StoreOptions(
        flush_log_at_commit=0,
        flush_log_interval=1e6,
        max_binlog_size=256 << 10,
        redo_segment_size=1 << 20,
        fifo_pages_max=16,
    )
    with Store.open(tmp_path, options, disk=disk) as store:
        before = disk.syncs.copy()
        events = transaction("", group_bytes)
        for seq in range(1, BYTES // group_bytes + 1):
            with store.begin() as group:
                group.write(events)
                position = group.commit(Gtid(0, 1, seq))
        counts = disk.syncs - before
    pages = (position.file_no + 1) * options.file_pages
    fifos = pages // options.fifo_pages_max + 1
    segments = position.lsn // options.redo_segment_size + 1
    of_redo = sum(count for name, count in counts.items() if "redo" in name)
    assert 0 < of_redo <= fifos + 2 * segments
    of_files = sum(counts.values()) - of_redo
    assert of_files <= SYNCS_OF_A_FILE * (position.file_no + 2)
