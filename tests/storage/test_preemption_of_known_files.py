"""Whoever comes in between finds what is known of files as it is."""

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from ibb.protocol.binlog_state import BinlogState
from ibb.protocol.gtid import Gtid
from ibb.storage.file_states import FileStates
from ibb.storage.os_disk import OsDisk
from ibb.storage.watched_file import WatchedFile

from .preemption import Meeting, meet_everywhere, swapped


def watched_file(change):
    """Look at a file of the operating system, which is asked nothing once it is closed."""
    folder, found = TemporaryDirectory(), []
    for name in ("first", "second"):
        Path(folder.name, name).touch()
    watched = WatchedFile(OsDisk())
    watched.watch(f"{folder.name}/first")

    def check():
        folder.cleanup()
        assert found == [False]
        watched.close()

    return Meeting(
        lambda: found.append(watched.is_removed), lambda: change(watched, folder.name), check
    )


def a_look_at_a_file_and_another_one_to_watch():
    return watched_file(lambda watched, folder: watched.watch(f"{folder}/second"))


def a_look_at_a_file_and_nothing_more_to_watch():
    return watched_file(lambda watched, _: watched.close())


def file_states(*known):
    states = FileStates()
    for number in known:
        states.add(number, BinlogState([Gtid(0, 1, number)]))
    return states


def check_file_states(states, known):
    assert [number for number in range(10) if states.get(number) is not None] == known
    assert set(states.rising) <= set(known)
    assert states._pairs == 2 * len(known)


def two_files_of_which_the_states_become_known():
    states = file_states(5)

    def check():
        assert states.rising == range(4, 7)
        check_file_states(states, [4, 5, 6])

    return Meeting(
        lambda: states.add(4, BinlogState([Gtid(0, 1, 4)])),
        lambda: states.add(6, BinlogState([Gtid(0, 1, 6)])),
        check,
    )


def a_file_of_which_two_find_the_state():
    states = file_states(5)
    find = lambda: states.add(6, BinlogState([Gtid(0, 1, 6)]))  # noqa: E731
    return Meeting(find, find, lambda: check_file_states(states, [5, 6]))


def a_state_that_becomes_known_and_a_file_that_goes():
    states = file_states(4, 5, 7)
    return Meeting(
        lambda: states.add(6, BinlogState([Gtid(0, 1, 6)])),
        lambda: states.forget(5),
        lambda: check_file_states(states, [4, 6, 7]),
    )


SCENES = [
    a_look_at_a_file_and_another_one_to_watch, a_look_at_a_file_and_nothing_more_to_watch,
    two_files_of_which_the_states_become_known, a_file_of_which_two_find_the_state,
    a_state_that_becomes_known_and_a_file_that_goes,
]  # fmt: skip


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.__name__)
@pytest.mark.parametrize("is_swapped", [False, True], ids=["", "swapped"])
def test_what_is_known_is_whole(scene, is_swapped):
    assert meet_everywhere(lambda: swapped(scene()) if is_swapped else scene()) > 0
