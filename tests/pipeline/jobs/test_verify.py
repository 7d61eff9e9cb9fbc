"""The check on a cluster: what it hands out, and to whom."""

import pytest
from click.testing import CliRunner

from ibb.cli.main import ibb
from ibb.pipeline.jobs import entry, verify_plan
from ibb.pipeline.jobs.verify import verify_on
from ibb.storage.errors import NoBinlog
from ibb.storage.os_disk import OsDisk
from ibb.storage.verify import Totals, verify_directory

from ...sample_directories import unpack


class Context:
    """What is used of a SparkContext, in this process."""

    defaultParallelism = 4  # noqa: N815 - Spark's name

    def __init__(self):
        self.slices = []

    def parallelize(self, items, slices):
        self.slices.append(slices)
        self.items = items
        return self

    def map(self, work):
        self.items = [work(item) for item in self.items]
        return self

    def collect(self):
        return self.items


class Session:
    def __init__(self):
        self.sparkContext = Context()


def test_parts_are_spread_and_found_as_one(tmp_path, monkeypatch):
    unpack("plain-16k-1", tmp_path)
    (tmp_path / "binlog-000007.ibb").unlink()
    monkeypatch.setattr(verify_plan, "PART_BYTES_MIN", 1 << 19)
    session, totals, whole = Session(), Totals(), Totals()
    found = list(verify_on(session, f"file://{tmp_path}", totals=totals))
    assert found == list(verify_directory(OsDisk(), str(tmp_path), totals=whole))
    assert str(found[0].kind) == "missing-file"
    assert totals == whole
    assert session.sparkContext.slices[0] > 8


@pytest.mark.parametrize("scheme", ["", "file://"])
def test_a_directory_without_a_binlog_is_not_called_sound(tmp_path, monkeypatch, scheme):
    monkeypatch.setattr(entry, "job_session", lambda *_: pytest.fail("Spark was begun"))
    words = ["verify", f"{scheme}{tmp_path}", "--master", "local"]
    with pytest.raises(NoBinlog, match=str(tmp_path)):
        CliRunner().invoke(ibb, words, catch_exceptions=False)
