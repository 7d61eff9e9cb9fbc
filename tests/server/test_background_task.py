"""A task beside the others runs until it is stopped, and is not silent if it ends by itself."""

import asyncio

from structlog.testing import capture_logs

from ibb.server.background_task import BackgroundTask

from .waiting import until


async def test_it_runs_until_it_is_stopped_and_then_another_may():
    task, left = BackgroundTask("tests"), []

    async def work(name):
        try:
            await asyncio.Event().wait()
        finally:
            left.append(name)

    await task.stop()  # before there is any
    assert not task.is_running
    with capture_logs() as lines:
        for name in ("first", "second"):
            task.start(work(name))
            await asyncio.sleep(0)
            assert task.is_running
            await task.stop()
            assert not task.is_running
            assert left[-1] == name
    assert lines == []


async def test_another_may_begin_before_one_that_is_cancelled_has_ended():
    task, steps = BackgroundTask("tests"), []

    async def end_late():
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            steps.append("first ended")

    async def begin():
        steps.append("second began")
        await asyncio.Event().wait()

    task.start(end_late())
    await asyncio.sleep(0)
    task.cancel()
    task.start(begin())
    await until(lambda: len(steps) == 2)
    assert task.is_running
    await task.stop()


async def test_what_ends_it_by_itself_is_logged_at_once():
    task = BackgroundTask("tests")

    async def fail():
        raise ZeroDivisionError

    with capture_logs() as lines:
        task.start(fail())
        await until(lambda: lines)
        assert not task.is_running
        await task.stop()
    (line,) = lines
    assert line["event"] == "background_task_failed"
    assert line["task"] == "tests"
    assert isinstance(line["exc_info"], ZeroDivisionError)
