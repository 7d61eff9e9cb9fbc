"""Every group is read exactly once, however a history is cut into partitions."""

import random
from dataclasses import replace

import pytest

from ibb.pipeline.file_ranges import FileRange
from ibb.pipeline.options import SourceOptions
from ibb.pipeline.read_plan import groups_of, plan_read
from ibb.protocol.binlog_state import BinlogState
from ibb.storage.file_name import binlog_name

from ..storage.random_history import FIRST_DOMAIN, RandomHistory
from .published import made_store

HISTORIES = 200
HISTORIES_A_TEST = 25
PARTITIONS = (1, 2, 5, 1000)


def read(directory, **options):
    """Return (GTID, events) of each group, and the number of partitions."""
    tasks = plan_read(SourceOptions.parse({"path": str(directory), **options}))
    found = []
    for task in tasks:
        found += [(group.gtid, b"".join(group.pieces())) for group in groups_of(task)]
    return found, len(tasks)


def store_files(history, directory):
    for number, data in history.images().items():
        (directory / binlog_name(number)).write_bytes(data)


@pytest.mark.parametrize("first_seed", range(0, HISTORIES, HISTORIES_A_TEST))
def test_each_group_is_read_once(first_seed, tmp_path):
    most = 0
    for seed in range(first_seed, first_seed + HISTORIES_A_TEST):
        history = RandomHistory(seed)
        history.run()
        directory = tmp_path / str(seed)
        directory.mkdir()
        store_files(history, directory)
        wanted = [(gtid, events) for gtid, _, events in history.diary.published]
        for count in PARTITIONS:
            found, tasks = read(directory, minPartitions=str(count))
            assert [gtid for gtid, _ in found] == [gtid for gtid, _ in wanted], (seed, count)
            assert all(
                got.endswith(events) for (_, got), (_, events) in zip(found, wanted, strict=False)
            )
            most = max(most, tasks)
        if not history.diary.deleted:
            read_between(history, directory, random.Random(seed))
        for file in directory.iterdir():
            file.unlink()
    assert most > 10


def read_between(history, directory, rng):
    """Read from one position to another, each as it was at some time."""
    gtids = [gtid for gtid, _, _ in history.diary.published]
    first, last = sorted(rng.sample(range(len(gtids) + 1), 2))
    before = [gtid for gtid in history.final_state.entries() if gtid.domain >= FIRST_DOMAIN]
    start, end = (str(BinlogState([*before, *gtids[:count]]).position()) for count in (first, last))
    options = {"startingGtid": start or "earliest", "minPartitions": "6"}
    found, _ = read(directory, endingGtid=end, **options)
    assert [gtid for gtid, _ in found] == gtids[first:last]


def test_a_group_that_begins_where_a_range_ends_is_of_the_next(tmp_path):
    """Ranges of a plan end where no group can begin; whoever makes others gets none twice."""
    wanted = made_store(tmp_path, 40)
    (task,) = plan_read(SourceOptions.parse({"path": str(tmp_path)}))
    places = [group.position for group in groups_of(task)]
    for place in places[1:]:
        halves = FileRange(task.part.start, place), FileRange(place, task.part.end)
        found = [
            str(group.gtid) for part in halves for group in groups_of(replace(task, part=part))
        ]
        assert found == wanted
