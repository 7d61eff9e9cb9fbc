"""Files are looked at before anybody seeks: in turns, and noted where they are ours."""

from dataclasses import replace

import pytest
from structlog.testing import capture_logs

from ibb.protocol.gtid import Gtid
from ibb.server import state_learner
from ibb.server.state_learner import StateLearner
from ibb.storage.errors import DiskError
from ibb.storage.os_disk import OsDisk
from ibb.storage.read_only import ReadOnlyHistory
from ibb.storage.rising_note import NOTE_FILES, NOTE_NAME, RisingNote
from ibb.storage.store import Store

from .conftest import SMALL, publish
from .waiting import until

FILES = 2 * NOTE_FILES
TINY = replace(SMALL, max_binlog_size=4096, page_size=512, state_interval=512)


def add_files(store, first, count):
    for seq in range(first, first + count):
        publish(store, Gtid(0, 1, seq))
        store.switch_file()


@pytest.fixture
def store(tmp_path):
    with Store.open(tmp_path / "files", TINY) as opened:
        add_files(opened, 1, FILES)
        yield opened


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(state_learner, "LOOK_SECONDS", 0.01)


def known(history):
    return history.pages.file_states.rising


async def test_a_server_knows_all_files_and_those_that_come(serve, store, tmp_path):
    await serve(store)
    await until(lambda: known(store) == range(FILES + 1))
    await until((tmp_path / "files" / NOTE_NAME).exists)
    add_files(store, FILES + 1, 3)
    await until(lambda: known(store) == range(FILES + 4))
    store.reset()
    add_files(store, 1, 5)
    await until(lambda: known(store) == range(6))
    assert not (tmp_path / "files" / NOTE_NAME).exists()


async def test_files_of_another_program_are_known_and_nothing_is_written(serve, store, tmp_path):
    history = ReadOnlyHistory(OsDisk(), str(tmp_path / "files"))
    await serve(history)
    await until(lambda: known(history)[:FILES] == range(FILES))  # the newest may be empty still
    assert not (tmp_path / "files" / NOTE_NAME).exists()
    history.close()


async def test_it_is_done_in_turns(store, monkeypatch):
    monkeypatch.setattr(state_learner, "TURN_SECONDS", -1.0)
    learner, turns = StateLearner(store), []
    while not learner._look():
        turns.append(len(known(store)))
    assert turns == list(range(1, FILES + 1))
    assert known(store) == range(FILES + 1)
    looks = []
    monkeypatch.setattr(RisingNote, "extend", lambda *_: looks.append(1))
    assert learner._look()
    assert not looks  # as there is no other file


@pytest.mark.parametrize(
    "error",
    [DiskError(28, "no space", operation="write", path="note"), RuntimeError("whatever")],
)
async def test_what_fails_is_told_once_and_tried_again_behind_the_next_file(
    store, monkeypatch, error
):
    extend, failing, looks = RisingNote.extend, [True], []
    last_file = type(store.pages).last_file

    def fail(note, is_enough):
        if failing:
            raise error
        return extend(note, is_enough)

    monkeypatch.setattr(RisingNote, "extend", fail)
    learner = StateLearner(store)
    with capture_logs() as logs:
        learner.start(None)
        await until(lambda: logs)
        monkeypatch.setattr(
            type(store.pages), "last_file", lambda pages: looks.append(1) or last_file(pages)
        )
        await until(lambda: len(looks) > 3)
        assert [log["event"] for log in logs] == ["file_states_not_learned"]
        failing.clear()
        add_files(store, FILES + 1, 1)
        await until(lambda: known(store) == range(FILES + 2))
    await learner.stop()
    assert not learner._looking.is_running
