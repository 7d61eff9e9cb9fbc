"""The redo log as `ibb inspect` shows it: of a store that was closed, and of one that is in use."""

from dataclasses import replace

from ibb.protocol.gtid import Gtid
from ibb.storage import Store
from ibb.storage.inspect.redo import inspect_groups, inspect_segments
from ibb.storage.os_disk import OsDisk

from ...tiny import SMALL
from ..events import transaction

OPTIONS = replace(SMALL, background=False)
DISK = OsDisk()


def publish(store, seq, *, wait):
    with store.begin() as group:
        group.write(transaction(f"group {seq}"))
        group.commit(Gtid(0, 1, seq), wait=wait)


def test_the_segment_of_the_highest_number_is_the_newest_in_either_file(tmp_path):
    """Each closing begins one, now in the first file and now in the second."""
    newest_in = set()
    for _ in range(4):
        with Store.open(tmp_path, OPTIONS):
            pass
        lines = inspect_segments(DISK, str(tmp_path))
        newest = max(line.sequence for line in lines)
        statuses = {newest: "newest", newest - 1: "older"}
        assert {line.sequence: line.status for line in lines} == statuses
        newest_in |= {line.name for line in lines if line.status == "newest"}
    with Store.open(tmp_path, OPTIONS):
        for line in inspect_segments(DISK, str(tmp_path)):
            newest_in |= {line.name} if line.status == "newest" else set()
    assert len(newest_in) == 2


def test_of_a_store_in_use_the_groups_that_are_synced_are_shown_and_no_others(tmp_path):
    with Store.open(tmp_path, OPTIONS) as store:
        redo = store._engine._redo
        for seq in range(1, 4):
            publish(store, seq, wait=True)
            synced = redo.synced_lsn
            publish(store, seq + 10, wait=False)
            redo.write_to(redo.next_lsn)
            assert redo.next_lsn > synced
            lines = list(inspect_groups(DISK, str(tmp_path)))
            assert {line.status for line in lines} == {"ok"}
            assert lines[-1].end_lsn == synced
            store.sync()
