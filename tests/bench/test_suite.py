"""Each family of rows on tiny data: figures come, and only from who sends everything."""

import json
import os
import signal
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from ibb.bench import suite
from ibb.bench.data_set import Facts
from ibb.bench.errors import BenchError
from ibb.bench.figures import Sample
from ibb.bench.readers import read
from ibb.bench.row import Row
from ibb.bench.rows import catch_up
from ibb.bench.suite import QUICK_ROWS, ROWS, rows_named, run
from ibb.bench.workbench import TINY, Workbench, check, in_turn
from ibb.cli import bench as command
from ibb.cli.main import ibb
from ibb.demo.installation import Installation

pytestmark = pytest.mark.xdist_group("bench")

COMPARED = {
    "speed",
    "rows a second of one core",
    "p50",
    "until it accepts connections",
    "serving, over idle",
    "processor",
}


@pytest.fixture(scope="module")
def data_folder(tmp_path_factory):
    return tmp_path_factory.mktemp("b")


def measured(name, folder, installation=None):
    with Workbench(TINY, folder, installation) as bench:
        (one,) = run(bench, rows_named([name]), 1).rows
    assert not one.left_out
    return {figure.name: figure for figure in one.figures}


@pytest.mark.live
@pytest.mark.parametrize(
    "name",
    [
        *("catch-up-1-one-row", "catch-up-8-bulk", "tail-1000", "ingest-one-row-durable"),
        *("latency-100", "seek-full", "restart", "idle", "decode-one-row"),
    ],
)
def test_a_row_is_measured_on_both_sides(name, data_folder):
    installation = Installation.find()
    assert installation is not None, "run scripts/setup"
    figures = measured(name, data_folder, installation)
    for one in figures.values():
        assert len(one.ours) == 1
        assert len(one.theirs) == (1 if one.name in COMPARED else len(one.theirs))


@pytest.mark.parametrize("name", ["seek-files", "verify", "memory"])
def test_a_row_is_measured_without_mariadb(name, data_folder):
    figures = measured(name, data_folder)
    assert all(len(one.ours) == 1 and not one.theirs for one in figures.values())


def test_a_side_that_sends_something_else_gets_no_figure(data_folder):
    with Workbench(TINY, data_folder) as bench:
        data = bench.data("one-row")
        with bench.ibb(data.store) as peer:
            whole = read(peer, content=True)
            check(peer, whole, data, content=True)
            less = read(peer, start="0-1-1")
    with pytest.raises(BenchError, match="ibb sent"):
        check(peer, less, data)
    facts = data.facts
    for wrong in (
        Facts(facts.groups, facts.events, facts.size, facts.content + 1, facts.shape),
        Facts(facts.groups, facts.events, facts.size, facts.content, facts.shape + 1),
    ):
        with pytest.raises(BenchError, match="other bytes"):
            check(peer, whole, replace(data, facts=wrong), content=True)


def test_who_is_terminated_leaves_nothing_behind(tmp_path):
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(SystemExit, match="143"), Workbench(TINY, tmp_path) as bench:
        assert bench.folder.exists()
        os.kill(os.getpid(), signal.SIGTERM)
        signal.pause()
    assert list(tmp_path.iterdir()) == []
    assert signal.getsignal(signal.SIGTERM) is before


def test_the_sides_take_turns_in_being_first():
    order = []
    for turn in range(3):
        in_turn(turn, lambda: order.append("ibb"), lambda: order.append("mariadbd"))
    assert order == ["ibb", "mariadbd", "mariadbd", "ibb", "ibb", "mariadbd"]


def test_rows_have_names_of_their_own():
    names = [row.name for row in ROWS]
    assert len(names) == len(set(names))
    assert set(QUICK_ROWS) <= set(names)
    assert [row.name for row in rows_named(["seek-*", "idle"])] == [
        "seek-full",
        "seek-files",
        "idle",
    ]
    with pytest.raises(BenchError, match="no row 'fast'; there are: catch-up-1-bulk"):
        rows_named(["fast"])


@contextmanager
def two_figures(bench):
    assert bench.scale is TINY
    yield lambda turn: [Sample("speed", "MB/s", 100.0 + turn, 50.0), Sample("memory", "MiB", 3.0)]


def test_the_command_prints_a_table_or_an_object(tmp_path, monkeypatch):
    for module in (suite, command):
        monkeypatch.setattr(module, "ROWS", (Row("made-up", "about", "cold", two_figures),))
    words = ["bench", "--scale", "tiny", "--rounds", "2", "--no-mariadbd", "--data", str(tmp_path)]
    text = CliRunner().invoke(ibb, words)
    assert text.exit_code == 0, text.output
    lines = text.output.splitlines()
    assert lines[0].startswith("row      figure")
    assert lines[1].split() == ["made-up", "speed", "MB/s", "100", "50.0", "2.00", "2.01", "2.02"]
    assert "tiny scale, 2 rounds a row" in text.output
    told = json.loads(CliRunner().invoke(ibb, [*words, "--json"]).output)
    assert [one["ibb"] for one in told["rows"][0]["figures"]] == [[100.0, 101.0], [3.0, 3.0]]
    assert list(tmp_path.iterdir()) == []


def test_the_command_lists_its_rows():
    listed = CliRunner().invoke(ibb, ["bench", "--list"])
    assert [line.split()[0] for line in listed.output.splitlines()] == [row.name for row in ROWS]


@pytest.mark.parametrize(("readers", "speed"), [(1, 3.0), (8, 9.0)])
def test_one_reader_that_catches_up_is_the_median_of_some_passes(readers, speed, monkeypatch):
    speeds = iter([9.0, 1.0, 2.0, 3.0, 8.0])
    monkeypatch.setattr(
        catch_up, "_read", lambda *_: catch_up._Reading(next(speeds), 0.0, 0.0, 0.0)
    )
    bench = SimpleNamespace(data=lambda kind: kind, both=lambda data: nullcontext((data, None)))
    with catch_up._catch_up(bench, "bulk", readers, None, None) as measure:
        first, *_ = measure(0)
    assert (first.name, first.ours, first.theirs) == ("speed", speed, None)
