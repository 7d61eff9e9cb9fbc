"""Log lines: their shape, and what must never be in them."""

import errno
import json
import sys
from collections import Counter
from io import StringIO

import pytest
import structlog

from ibb.server import log
from ibb.server.log import get_log, set_up_log


@pytest.fixture(autouse=True)
def as_before():
    yield
    structlog.reset_defaults()


class FullFile(StringIO):
    """As /dev/full."""

    attempts = 0

    def flush(self):
        self.attempts += 1
        raise OSError(errno.ENOSPC, "No space left on device")


def fail():
    secret = "the password"  # noqa: F841 - to be looked for in the log
    raise ValueError("no good")


@pytest.mark.parametrize("shape", ["text", "json"])
def test_a_traceback_shows_no_local_variables(shape, capsys):
    set_up_log(level="info", shape=shape)
    try:
        fail()
    except ValueError:
        get_log().exception("session_failed", peer="1.2.3.4:5")
    written = capsys.readouterr()
    assert written.out == ""
    assert "no good" in written.err
    assert "the password" not in written.err


def test_json_lines_hold_event_level_and_values(capsys):
    set_up_log(level="warning", shape="json")
    get_log().info("not_written")
    get_log().bind(user="repl").warning("client_refused", reason="why")
    (line,) = capsys.readouterr().err.splitlines()
    found = json.loads(line)
    assert found.pop("timestamp").endswith("Z")
    assert found == {
        "event": "client_refused",
        "level": "warning",
        "user": "repl",
        "reason": "why",
    }


def test_problems_are_counted_by_event_up_to_a_bound(capsys, monkeypatch):
    counted = Counter()
    monkeypatch.setattr(log, "PROBLEMS", counted)
    monkeypatch.setattr(log, "PROBLEMS_MAX", 2)
    set_up_log(level="info", shape="json")
    get_log().info("dump_started")
    for event in ("purge_failed", "purge_failed", "store_failed", "dump_failed", "purge_failed"):
        get_log().error(event)
    get_log().warning("dump_dropped")
    assert counted == {
        ("error", "purge_failed"): 3,
        ("error", "store_failed"): 1,
        ("error", "other"): 1,
        ("warning", "other"): 1,
    }
    assert capsys.readouterr().err.count("\n") == 7


@pytest.mark.parametrize("shape", ["text", "json"])
def test_what_cannot_be_written_is_lost_and_ends_nothing(shape, monkeypatch, capsys):
    full = FullFile()
    monkeypatch.setattr(sys, "stderr", full)
    set_up_log(level="info", shape=shape)
    for write in (get_log().info, get_log().warning, get_log().error, get_log().critical):
        write("files_purged")
    try:
        fail()
    except ValueError:
        get_log().exception("session_failed")
    assert full.attempts == 5
    assert capsys.readouterr() == ("", "")
