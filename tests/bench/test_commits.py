"""The benchmark of commits: every round commits for real, and all is there afterwards."""

import json

import pytest
from click.testing import CliRunner

from ibb.bench import commits
from ibb.bench.commits import measure_commits
from ibb.cli.main import ibb
from ibb.storage import Store


def test_each_round_gives_a_figure(tmp_path, monkeypatch):
    groups: list[int] = []

    class Counted(Store):
        def close(self) -> None:
            groups.append(sum(1 for group in self.reader() if group.gtid is not None))
            super().close()

    monkeypatch.setattr(commits, "Store", Counted)
    rounds = list(measure_commits(str(tmp_path), seconds=0.2, committers=20))
    assert [found.name.split(",")[0] for found in rounds] == [
        "bare write and fdatasync",
        "one committer",
        "20 tasks",
        "20 threads",
        "bulk",
    ]
    assert all(found.per_second > 0 for found in rounds)
    assert len(groups) == 4
    for found, stored in zip(rounds[1:4], groups, strict=False):
        # The rate is over the round alone, the count is exact: they agree within the round's ends.
        assert stored > 0
        assert found.per_second <= stored / 0.2
        assert found.ratio == pytest.approx(found.per_second / rounds[0].per_second)
    assert list(tmp_path.iterdir()) == []


def test_prints_a_line_or_an_object_a_round(tmp_path):
    arguments = ["bench", "commits", "--folder", str(tmp_path), "--seconds", "0.05"]
    arguments += ["--committers", "3"]
    text = CliRunner().invoke(ibb, arguments)
    assert text.exit_code == 0
    assert [line.split("  ")[0] for line in text.output.splitlines()][1:4] == [
        "one committer",
        "3 tasks",
        "3 threads",
    ]
    objects = CliRunner().invoke(ibb, [*arguments, "--json"])
    assert [json.loads(line)["unit"] for line in objects.output.splitlines()] == [
        "syncs",
        "groups",
        "groups",
        "groups",
        "MB",
    ]


def test_refuses_a_round_without_time(tmp_path):
    result = CliRunner().invoke(ibb, ["bench", "commits", "--seconds", "0"])
    assert result.exit_code == 2
    assert "--seconds" in result.output
