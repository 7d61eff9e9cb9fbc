"""Whoever comes in between finds the work of the background whole."""

import pytest

from ibb.storage.file_name import binlog_name

from .preempted_store import Scene
from .preemption import Meeting, meet_everywhere

STOPS_MAX = 40
BACKGROUND = ("/housekeeper.py", "/page_flusher.py", "/page_fifo.py", "/binlog_files.py")


def full_pages():
    """Return a scene with full pages and a left file for the background."""
    scene = Scene()
    engine = scene.store._engine
    engine._work = lambda: None
    scene.commit(0, 3, 2000)
    scene.store.switch_file()
    scene.commit(0, 4, 2000)
    return scene, engine


def two_who_do_the_work():
    scene, engine = full_pages()
    made = []
    engine._housekeeper._on_file_made = lambda: made.append(engine._housekeeper._prepared)

    def check():
        assert len(made) == len(set(made)) <= 1
        assert engine._housekeeper.oldest_open == engine.writer.file_no
        scene.check()

    return Meeting(engine._housekeeper.work, engine._housekeeper.work, check)


def two_who_write_pages():
    scene, engine = full_pages()
    return Meeting(engine._flusher.flush, engine._flusher.flush, scene.check)


def two_who_make_a_file():
    scene, engine = full_pages()
    file_no = engine.writer.file_no + 1
    scene.disk.log.clear()

    def check():
        assert sum(op.kind == "allocate" for op in scene.disk.log) <= 1
        scene.check()

    make = lambda: engine._housekeeper.make_file(file_no)  # noqa: E731
    return Meeting(make, make, check)


def two_who_close_files():
    scene, engine = full_pages()
    engine._flusher.flush()
    close = lambda: engine._housekeeper._close_before(engine.writer.file_no)  # noqa: E731

    def check():
        assert engine._housekeeper.oldest_open == engine.writer.file_no
        scene.check()

    return Meeting(close, close, check)


def a_checkpoint_and_the_work():
    scene, engine = full_pages()

    def checkpoint():
        with engine.writing:
            engine.checkpoint()

    return Meeting(checkpoint, engine._housekeeper.work, scene.check)


def a_purge_and_a_reset():
    """Full pages of the old history are in memory when those of the new one have their names."""
    scene = Scene()
    scene.commit(0, 3, 4000)

    def reset():
        scene.store.reset()
        scene.committed.clear()
        scene.commit(0, 1, 2000)

    return Meeting(lambda: scene.store.purge_to(binlog_name(0)), reset, scene.check)


WORKERS = [two_who_do_the_work, two_who_write_pages, two_who_make_a_file, two_who_close_files,
           a_checkpoint_and_the_work]  # fmt: skip


@pytest.mark.parametrize("scene", WORKERS, ids=lambda scene: scene.__name__)
def test_the_background_is_not_disturbed(scene):
    assert meet_everywhere(scene, stops=STOPS_MAX, within=BACKGROUND) > 0


def test_nobody_brings_pages_of_a_history_that_is_gone_to_the_files():
    within = (*BACKGROUND, "/engine.py")
    assert meet_everywhere(a_purge_and_a_reset, stops=STOPS_MAX, within=within) > 0
