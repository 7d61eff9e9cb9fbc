"""What tools see of a store that is open: nothing that a crash could take away."""

import gc
import random
import subprocess
import sys
from dataclasses import replace

import pytest

from ibb.protocol.gtid import Gtid
from ibb.storage import Store
from ibb.storage.directory import BinlogDirectory
from ibb.storage.inspect.group_range import groups_between
from ibb.storage.inspect.recovered_view import recovered_view
from ibb.storage.inspect.redo import inspect_groups
from ibb.storage.os_disk import OsDisk
from ibb.storage.read_only import ReadOnlyHistory
from ibb.storage.verify import Totals, verify_directory

from ...faults.sim_disk import SimDisk
from .. import reset_meanwhile
from ..events import transaction
from ..verify.verify_rig import SMALL, publish

DIRECTORY = "/s"


def shown(disk, directory=DIRECTORY):
    """Return the GTIDs that `ibb groups` lists."""
    history = ReadOnlyHistory(recovered_view(disk, directory), directory, follow_unsynced=True)
    try:
        return [str(group.gtid) for group in groups_between(history)]
    finally:
        history.close()


def verified(disk, directory=DIRECTORY):
    """Return the state that `ibb verify` tells, if it finds nothing wrong."""
    totals = Totals()
    for finding in verify_directory(disk, directory, totals=totals):
        assert finding.kind == "not-closed", finding
    return totals.last


def durable(store):
    """Return the GTIDs that the store shows its readers, without asking it to sync."""
    history = store.state()
    return [f"0-1-{number}" for number in range(1, history.newest(0).seq + 1)] if history else []


@pytest.mark.parametrize("mode", [0, 1, 2])
@pytest.mark.parametrize("seed", range(6))
def test_tools_show_what_the_store_shows_its_readers(mode, seed):
    rng = random.Random(seed)
    disk = SimDisk()
    store = Store.open(DIRECTORY, replace(SMALL, flush_log_at_commit=mode), disk=disk)
    number = 0
    for _ in range(25):
        for _ in range(rng.randrange(1, 6)):
            number += 1
            publish(store, number, rng.choice((0, 0, 300, 2000)))
        if rng.random() < 0.3:
            store.sync()
        if rng.random() < 0.1:
            store.switch_file()
        expected = durable(store)
        assert len(expected) == number or mode != 1
        assert shown(disk) == expected
        assert str(verified(disk)) == str(store.state())
        synced_lsn = store._engine._redo.synced_lsn
        assert all(group.end_lsn <= synced_lsn for group in inspect_groups(disk, DIRECTORY))
    store.close()
    assert shown(disk) == [f"0-1-{one}" for one in range(1, number + 1)]


def test_the_log_behind_the_last_sync_is_not_shown_while_the_store_lives():
    """In mode 2 it is with the operating system; once the process has ended, all of it counts."""
    disk = SimDisk()
    store = Store.open(DIRECTORY, replace(SMALL, flush_log_at_commit=2), disk=disk)
    publish(store, 1)
    store.sync()
    before = list(inspect_groups(disk, DIRECTORY))
    publish(store, 2)
    assert list(inspect_groups(disk, DIRECTORY)) == before
    assert shown(disk) == ["0-1-1"]
    assert str(verified(disk)) == "0-1-1"
    disk.end_process()
    assert len(list(inspect_groups(disk, DIRECTORY))) > len(before)
    assert shown(disk) == ["0-1-1", "0-1-2"]
    assert str(verified(disk)) == "0-1-2"
    assert shown(disk.crashed(random.Random(1), keep=0.0)) == ["0-1-1"]


def test_what_is_shown_of_a_store_in_use_survives_any_power_loss():
    disk = SimDisk()
    rng = random.Random(7)
    store = Store.open(DIRECTORY, replace(SMALL, flush_log_at_commit=2), disk=disk)
    for number in range(1, 120):
        publish(store, number, rng.choice((0, 400)))
        if rng.random() < 0.2:
            store.sync()
        seen = shown(disk)
        after = disk.crashed(rng, keep=rng.choice((0.0, 0.5)))
        with Store.open(DIRECTORY, SMALL, disk=after) as recovered:
            kept = [str(group.gtid) for group in recovered.reader() if group.gtid]
        assert kept[: len(seen)] == seen


@pytest.mark.parametrize(("before", "after"), reset_meanwhile.SIZES)
def test_nothing_of_the_log_is_shown_in_files_that_came_instead(before, after):
    """A view of a store that is begun anew at any call, one by one."""
    for disk in reset_meanwhile.disks(before, after):
        view = recovered_view(disk, DIRECTORY)
        seen = reset_meanwhile.groups_of(BinlogDirectory(view, DIRECTORY))
        assert reset_meanwhile.one_history(seen)


def test_a_view_is_gone_when_it_is_left_and_waits_for_no_collection():
    """Each holds pages and what the log tells of them; who looks every second would fill memory."""
    disk = SimDisk()
    with Store.open(DIRECTORY, SMALL, disk=disk) as store:
        for number in range(1, 40):
            publish(store, number)
        assert len(shown(disk)) == 39
        gc.collect()
        gc.disable()
        try:
            assert len(shown(disk)) == 39
            assert gc.collect() == 0
        finally:
            gc.enable()


WRITER = """
import sys
from ibb.protocol.gtid import Gtid
from ibb.storage import Store, StoreOptions

options = StoreOptions(
    page_size=4096, max_binlog_size=1 << 20, state_interval=65536, redo_segment_size=1 << 20,
    flush_log_at_commit=2, flush_log_interval=3600,
)
events = sys.stdin.buffer.read(int(sys.argv[2]))
store = Store.open(sys.argv[1], options)
for number in range(1, 6):
    with store.begin() as group:
        group.write(events)
        group.commit(Gtid(0, 1, number))
    if number == 3:
        store.sync()
print("written", flush=True)
sys.stdin.buffer.read()
"""


def test_the_programs_show_what_another_process_has_synced(tmp_path):
    directory, events = str(tmp_path / "store"), transaction("x")
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, directory, str(len(events))],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        writer.stdin.write(events)
        writer.stdin.flush()
        assert writer.stdout.readline() == b"written\n"
        assert programs_show(directory) == (3, "0-1-3")
        writer.kill()
        writer.wait()
        assert programs_show(directory) == (5, "0-1-5")
    finally:
        writer.kill()
        writer.communicate()
    with Store.open(directory) as store:
        assert store.state().contains(Gtid(0, 1, 5))


def programs_show(directory):
    """Return how many groups are listed, and the last state that the check tells."""
    listed = run("groups", directory)
    checked = run("verify", directory)
    assert shown(OsDisk(), directory) == [line.split()[0] for line in listed.splitlines()]
    return len(listed.splitlines()), checked.split(" to '")[1].split("'")[0]


def run(command, directory):
    done = subprocess.run(
        [sys.executable, "-m", "ibb", command, directory],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
