"""Which updates that leave columns out may have changed these all the same."""

from types import SimpleNamespace

import pytest

from ibb.pipeline.tables.unsaid_cells import unsaid
from ibb.protocol.rows.row_stage import DELETE, INSERT, UPDATE
from ibb.protocol.rows.rows_event import RowsHead

A_REPLACE, MAY_BE = "rows that a REPLACE changed", "rows that what may be a REPLACE changed"


def reason(statement, *, op=UPDATE, before=0b001, after=0b011, key=(0,), table="t", columns=3):
    """Return the reason for an event of *columns* columns whose images have those of the bits."""
    size = (columns + 7) // 8
    bits = b"".join(image.to_bytes(size, "little") for image in (before, after))
    head = RowsHead(1, op, 0, b"????" + bytes([columns]) + bits, 4)
    return unsaid(head, SimpleNamespace(table=table, optional=SimpleNamespace(key=key)), statement)


@pytest.mark.parametrize("op", [INSERT, DELETE])
def test_only_updates_keep_what_they_leave_out(op):
    assert reason("REPLACE INTO t VALUES (1)", op=op) == ""


@pytest.mark.parametrize(
    ("before", "after", "columns"),
    [(0b111, 0b111, 3), (0b111, 0b001, 3), (0b001, 0b110, 3), (0x1FF, 0, 9), (1, 0x1FE, 9)],
)
def test_where_nothing_is_left_out_nothing_is_unsaid(before, after, columns):
    assert reason("REPLACE INTO t VALUES (1)", before=before, after=after, columns=columns) == ""


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE t SET a = 1",
        "insert into `t` (id) values (1) on duplicate key update a = 2",
        "/* REPLACE */ -- REPLACE INTO t\n# so\n\tUPDATE shop.t AS x SET a = 1",
        "UPDATE other JOIN t USING (id) SET a = 1",
    ],
)
def test_statements_that_keep_columns(statement):
    assert reason(statement) == ""


@pytest.mark.parametrize(
    ("statement", "text"),
    [
        ("REPLACE INTO t VALUES (1)", A_REPLACE),
        ("/* UPDATE t */ replace t SET id = 1", A_REPLACE),
        ("LOAD DATA INFILE 'x' REPLACE INTO TABLE t", MAY_BE),
        ("/*!50000 REPLACE */ INTO t VALUES (1)", MAY_BE),
        ("/*M!100100 REPLACE */ INTO t VALUES (1)", MAY_BE),
        ("SET STATEMENT max_statement_time = 1 FOR REPLACE INTO t VALUES (1)", MAY_BE),
        ("INSERT INTO other VALUES (1)", MAY_BE),
        ("UPDATE tt SET t1 = 1, $t = 2", MAY_BE),
        ("", MAY_BE),
        (None, MAY_BE),
    ],
)
def test_statements_that_may_replace(statement, text):
    assert text in reason(statement)
    assert reason(statement, columns=9, after=0b1011).endswith("take a new snapshot of the table")


def test_what_does_not_set_the_key_is_no_replace():
    assert reason(None, after=0b010) == ""
    assert reason(None, after=0b010, key=(0, 2)) == ""
    assert MAY_BE in reason(None, after=0b010, key=(0, 1))
    assert MAY_BE in reason(None, after=0b010, key=None)
    assert A_REPLACE in reason("REPLACE INTO t VALUES (1)", after=0b010)
