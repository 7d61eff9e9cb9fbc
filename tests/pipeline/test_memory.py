"""What a read holds of a group is bounded by its batches, not by the group."""

import subprocess
import sys

import pytest

from ibb.pipeline import change_rows, row_events
from ibb.protocol.errors import FormatError
from ibb.storage import Store

from ..protocol.rows import row_encoder as enc
from ..storage.events import xid
from .conftest import ROOT
from .memory_of_a_read import GROUP_BYTES, HUGE_BYTES
from .published import OPTIONS, publish_events
from .test_changes import MAP, SPECS, changes, ids, write

MIB = 1 << 20


@pytest.mark.parametrize(
    ("mode", "shape", "most"),  # MiB beyond what the process took before; docs/spark.md
    [
        ("events", "large rows", 64),
        ("changes", "large rows", 128),
        ("changes", "small rows", 128),
        ("table", "large rows", 224),
        ("changes", "a huge row", 6 * HUGE_BYTES // MIB),
        ("changes", "a huge event", 4 * HUGE_BYTES // MIB),
        ("table", "a huge row", 4 * HUGE_BYTES // MIB),
        ("table", "a huge event", 4 * HUGE_BYTES // MIB),
    ],
)
def test_a_large_group_takes_little_memory(mode, shape, most):
    done = subprocess.run(
        [sys.executable, "-m", "tests.pipeline.memory_of_a_read", mode, shape],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=250,
    )
    assert done.returncode == 0, done.stderr
    rows, grown = done.stdout.split()
    assert int(rows) >= GROUP_BYTES // HUGE_BYTES - 1
    assert float(grown) < most < GROUP_BYTES / MIB


def test_what_is_kept_of_rows_events_is_bounded_by_their_number(tmp_path, monkeypatch):
    monkeypatch.setattr(change_rows, "TAGS_MAX", 10)
    seen = []
    batch = change_rows.change_batch
    monkeypatch.setattr(
        "ibb.pipeline.rows.change_batch",
        lambda rows, tags, columns: seen.append(len(tags)) or batch(rows, tags, columns),
    )
    with Store.open(tmp_path, OPTIONS) as store:
        for number in range(1, 60):
            publish_events(store, f"0-1-{number}", write(number), xid(1))
        assert [int(row) for _, row in ids(tmp_path)] == list(range(1, 60))
    assert len(seen) == 6
    assert max(seen) == 10


def test_a_batch_of_texts_has_so_many_values(tmp_path, monkeypatch):
    monkeypatch.setattr(change_rows, "TEXT_VALUES_MAX", 40)
    seen = []
    batch = change_rows.change_batch
    monkeypatch.setattr(
        "ibb.pipeline.rows.change_batch",
        lambda rows, tags, columns: seen.append(rows.rows) or batch(rows, tags, columns),
    )
    with Store.open(tmp_path, OPTIONS) as store:
        publish_events(store, "0-1-1", write(*range(95)), xid(1))
        assert [int(row) for _, row in ids(tmp_path)] == list(range(95))
    assert seen == [10] * 9 + [5]


def test_a_rows_event_that_is_too_large_is_refused_before_it_is_held(tmp_path, monkeypatch):
    monkeypatch.setattr(row_events, "ROWS_EVENT_BYTES_MAX", 5000)
    large = enc.rows_event(enc.WRITE, SPECS, [[(number, b"x" * 40)] for number in range(200)])
    with Store.open(tmp_path, OPTIONS) as store:
        publish_events(store, "0-1-1", MAP, large, xid(1))
        with pytest.raises(FormatError, match=r"0-1-1: rows of d.t in an event of \d+ bytes"):
            changes(tmp_path)
        assert changes(tmp_path, tables="d.u") == []
