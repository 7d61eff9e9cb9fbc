"""The table, the JSON and the plots, of an outcome that is made up."""

import json
from contextlib import nullcontext

import pytest
from click.testing import CliRunner

from ibb.bench import plots
from ibb.bench.errors import BenchError
from ibb.bench.figures import Figure, ratio, value_at_most
from ibb.bench.limits import Limits
from ibb.bench.plots import draw, joined
from ibb.bench.report import TITLES, as_object, notes, number, table_rows
from ibb.bench.row import Row
from ibb.bench.suite import Machine, Measured, Report
from ibb.cli.main import ibb


def row(name):
    return Row(name, f"about {name}", "warm", nullcontext)


@pytest.fixture
def report():
    speed = Figure("catch-up-1-bulk", "speed", "MB/s", ratio(1.4), [150.0, 300.0], [100.0, 100.0])
    more = Figure("catch-up-8-bulk", "speed", "MB/s", None, [500.0, 520.0], [900.0, 910.0])
    curve = [
        Figure("history", f"{size} GiB", "s", None, [size * 2], [size]) for size in (0.5, 1.0, 2.0)
    ]
    bent = Figure("history", "slowest over fastest byte", "x", value_at_most(1.25), [1.5])
    programs = "3.11.2", "compiled", "mariadbd 10.11", "interpreted"
    machine = Machine("a processor", 2, 7.25, *programs, "bbr")
    rows = (
        Measured(row("catch-up-1-bulk"), (speed,)),
        Measured(row("catch-up-8-bulk"), (more,)),
        Measured(row("history"), (*curve, bent)),
        Measured(row("latency-1000"), (), "needs a mariadbd"),
    )
    return Report("tiny", 2, machine, Limits(9.5, 3.25, 0.18, 0.31, 8000.0, 0.61, 1.9), rows)


def test_a_line_has_medians_ratios_goal_and_verdict(report):
    first, second, *rest = table_rows(report)
    assert dict(zip(TITLES, first, strict=True)) == {
        "row": "catch-up-1-bulk",
        "figure": "speed",
        "unit": "MB/s",
        "ibb": "225",
        "mariadbd": "100",
        "least": "1.50",
        "ratio": "2.25",
        "most": "3.00",
        "must reach": ">= 1.4 x",
        "": "met",
    }
    assert second[-2:] == ("", "")
    assert [line[0] for line in rest] == ["history", "", "", "", "latency-1000"]
    assert rest[3][3:] == ("1.50", "-", "-", "-", "-", "<= 1.25", "short")
    assert rest[4][1] == "needs a mariadbd"


def test_the_notes_say_what_spoils_figures(report):
    told = "\n".join(notes(report))
    for word in (
        "2 rounds",
        "busy (load 7.2)",
        "interpreted reader",
        "memcpy 9.5",
        "8,000",
        "by bbr",
    ):
        assert word in told


def test_json_has_every_round(report):
    told = json.loads(json.dumps(as_object(report)))
    first = told["rows"][0]["figures"][0]
    assert first["ibb"] == [150.0, 300.0]
    assert first["ratio"] == {"least": 1.5, "median": 2.25, "most": 3.0}
    assert (first["goal"]["bound"], first["verdict"]) == (1.4, "met")
    assert told["rows"][3]["left_out"] == "needs a mariadbd"
    assert told["limits"]["syncs"] == 8000.0


@pytest.mark.parametrize(
    ("amount", "text"),
    [
        *((1234567.8, "1,234,568"), (12.345, "12.3"), (1.2345, "1.23"), (0.0456, "0.046")),
        *((4e-5, "4e-05"), (0.0, "0"), (None, "-")),
    ],
)
def test_numbers_have_three_digits_that_count(amount, text):
    assert number(amount) == text


def test_plots_are_drawn_of_what_is_there(report, tmp_path):
    drawn = draw(as_object(report), tmp_path / "plots")
    assert [path.name for path in drawn] == [
        "bench-ratios.png",
        "bench-readers.png",
        "bench-history.png",
    ]
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in drawn)


def test_rows_of_several_runs_are_drawn_together(report, tmp_path):
    """Nothing is measured again; of a row that several have, the last one's figures count."""
    told, paths = as_object(report), [tmp_path / f"{name}.json" for name in ("one", "two")]
    again = json.loads(json.dumps({"rows": told["rows"][:1]}))
    again["rows"][0]["figures"][0]["ibb"] = [1.0]
    again["rows"].append({"row": "history", "figures": []})  # left out there
    paths[0].write_text(json.dumps(told))
    paths[1].write_text(json.dumps(again))
    rows = {row["row"]: row["figures"] for row in joined(paths)["rows"]}
    assert rows["catch-up-1-bulk"][0]["ibb"] == [1.0]
    assert rows["history"] == told["rows"][2]["figures"]
    assert "latency-1000" not in rows
    words = ["bench", "draw", *map(str, paths), "--plots", str(tmp_path / "plots")]
    result = CliRunner().invoke(ibb, words)
    assert result.exit_code == 0, result.output
    assert sorted(path.name for path in (tmp_path / "plots").iterdir()) == [
        "bench-history.png",
        "bench-ratios.png",
        "bench-readers.png",
    ]


def test_the_plot_of_seeks_is_of_those_that_are_apart(tmp_path, monkeypatch):
    drawn = []
    monkeypatch.setattr(plots, "_curve", lambda points, *_: drawn.append(points) or False)
    figures = [
        {"name": name, "unit": unit, "ibb": [1.0], "mariadbd": None, "ratio": None, "goal": None}
        for name, unit in (
            ("10 files, p50", "ms"),
            ("10 files, p50 in a row", "ms"),
            ("10 files, reads", ""),
        )
    ]
    assert draw({"rows": [{"row": "seek-files", "figures": figures}]}, tmp_path) == []
    assert [(10.0, figures[0])] in drawn
    assert not any(len(points) > 1 for points in drawn)


@pytest.mark.parametrize("text", ["", "[1]", "{}", '{"rows": [{"row": "idle"}]}'])
def test_what_no_run_has_printed_is_refused(text, tmp_path):
    path = tmp_path / "run.json"
    path.write_text(text)
    with pytest.raises(BenchError, match=f"{path} is not what `ibb bench --json` prints"):
        joined([path])
