"""What is held at a time is bounded by bytes, not by rows alone."""

import pytest

from ibb.pipeline.tables import mariadb_source
from ibb.pipeline.tables.mariadb_source import FETCH_ROWS_FIRST, FETCH_ROWS_MAX
from ibb.pipeline.tables.snapshot_view import view_of_tables

pytestmark = [pytest.mark.live, pytest.mark.xdist_group("change_tables")]

ROW = 100_000
MIB = 1 << 20


def test_a_batch_ends_with_the_group_that_fills_it(topology, tmp_path):
    primary = topology.primary
    primary.run("CREATE OR REPLACE DATABASE large", "CREATE TABLE large.t (id INT KEY, b LONGBLOB)")
    config = topology.config(tmp_path, include=("large.*",), batch_bytes=MIB)
    topology.run(config)
    rows = [f"INSERT INTO large.t VALUES ({number}, REPEAT('x', {ROW}))" for number in range(40)]
    primary.run(*rows)
    batches = [applied.rows for _, applied in topology.run(config)]
    fit = -(-MIB // ROW)
    assert batches == [fit] * (40 // fit) + [40 % fit] * (40 % fit > 0)
    assert topology.differences(config) == ([], 1)


def test_a_snapshot_fetches_and_cuts_by_bytes(topology, tmp_path, monkeypatch):
    monkeypatch.setattr(mariadb_source, "FETCH_BYTES", MIB)
    monkeypatch.setattr(mariadb_source, "RANGE_BYTES", MIB)
    primary = topology.primary
    primary.run(
        "CREATE OR REPLACE DATABASE large",
        "USE large",
        "CREATE TABLE large.t (id INT PRIMARY KEY, b LONGBLOB)",
        f"INSERT INTO large.t SELECT seq, REPEAT('x', {ROW}) FROM seq_1_to_100",
        "CREATE TABLE large.small (id INT PRIMARY KEY)",
        f"INSERT INTO large.small SELECT seq FROM seq_1_to_{2 * FETCH_ROWS_MAX}",
        "ANALYZE NO_WRITE_TO_BINLOG TABLE large.t, large.small",
    )
    config = topology.config(tmp_path, include=("large.*",))
    with view_of_tables(config.server, config.wants, goes_on=True) as (view, tables):
        small, large = sorted(tables, key=lambda table: table.name)
        pieces = [piece.num_rows for piece in view.read(large, 0)]
        assert len(view.ranges(large, 50_000)) >= 100 * ROW // MIB
        assert len(view.ranges(small, 50_000)) == 1
        assert [piece.num_rows for piece in view.read(small, 0)][:2] == [
            FETCH_ROWS_FIRST,
            FETCH_ROWS_MAX,
        ]
    assert pieces[0] == FETCH_ROWS_FIRST
    assert set(pieces[1:-1]) == {MIB // ROW}
    assert sum(pieces) == 100
