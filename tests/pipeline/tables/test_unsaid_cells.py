"""Which updates that leave columns out may have changed these all the same."""

from types import SimpleNamespace

import pytest

from ibb.pipeline.tables.unsaid_cells import RowStatement, unsaid
from ibb.protocol.rows.row_stage import DELETE, INSERT, UPDATE
from ibb.protocol.rows.rows_event import RowsHead

A_REPLACE, INSERT_OR_TRIGGER = "rows that a REPLACE changed", "rows that an INSERT or a trigger"
MAY_BE = "rows that what may be a REPLACE changed"


def table(name="t", number=1, *, has_triggers=False, key=(0,)):
    """Return what matters of a table map."""
    optional = SimpleNamespace(key=key)
    return SimpleNamespace(table=name, number=number, has_triggers=has_triggers, optional=optional)


def head(op=UPDATE, before=0b001, after=0b011, columns=3):
    """Return the head of an event of *columns* columns whose images have those of the bits."""
    size = (columns + 7) // 8
    bits = b"".join(image.to_bytes(size, "little") for image in (before, after))
    return RowsHead(1, op, 0, b"????" + bytes([columns]) + bits, 4)


def reason(text, *others, rows=None, of=None):
    """Return the reason for rows of a table, by a statement that has maps of *others* too."""
    of = of or table()
    statement = RowStatement(text.encode())
    for one in (*others, of):
        statement.uses(one)
    return unsaid(rows or head(), of, statement)


@pytest.mark.parametrize("op", [INSERT, DELETE])
def test_only_updates_keep_what_they_leave_out(op):
    assert reason("REPLACE INTO t VALUES (1)", rows=head(op)) == ""


@pytest.mark.parametrize(
    ("before", "after", "columns"),
    [(0b111, 0b111, 3), (0b111, 0b001, 3), (0b001, 0b110, 3), (0x1FF, 0, 9), (1, 0x1FE, 9)],
)
def test_where_nothing_is_left_out_nothing_is_unsaid(before, after, columns):
    assert reason("REPLACE INTO t VALUES (1)", rows=head(UPDATE, before, after, columns)) == ""


def test_an_event_that_is_cut_is_told_of_by_who_decodes_it():
    cut = head()._replace(event=b"????\x03\x01")
    assert reason("REPLACE INTO t VALUES (1)", rows=cut) == ""


@pytest.mark.parametrize(
    "text",
    [
        "UPDATE t SET a = 1",
        "UPDATE a_view SET a = 1",
        "UPDATE `a``b` SET a = 1",
        "SET STATEMENT max_statement_time = 1 FOR UPDATE t SET a = 1",
        "/*!50000 UPDATE */ t SET a = 1",
        "--\nUPDATE t\nSET a = 1",
        "/* REPLACE */ -- REPLACE INTO t\n# so\n\tUPDATE shop.t AS x SET a = 1",
    ],
)
def test_an_update_keeps_what_it_does_not_name_whatever_triggers_do(text):
    assert reason(text) == reason(text, of=table(has_triggers=True)) == ""


def test_an_insert_does_where_there_are_no_triggers():
    text = "insert into `t` (id) values (1, 'secret') on duplicate key update a = 2"
    assert reason(text) == ""
    found = reason(text, of=table(has_triggers=True))
    assert INSERT_OR_TRIGGER in found
    assert "insert into t ( id ) values ( ? , ? ) on" in found
    assert INSERT_OR_TRIGGER in reason(text, rows=head(after=2), of=table(has_triggers=True))


@pytest.mark.parametrize(
    ("text", "stated"),
    [
        ("REPLACE INTO t VALUES (1)", A_REPLACE),
        ("/* UPDATE t */ replace t SET id = 1", A_REPLACE),
        ("/*M!100100 REPLACE */ INTO t VALUES (1)", A_REPLACE),
        ("SET STATEMENT max_statement_time = 1 FOR REPLACE INTO t VALUES (1)", A_REPLACE),
        ("LOAD DATA INFILE 'x' REPLACE INTO TABLE t", A_REPLACE),
        ("LOAD DATA INFILE 'x' INTO TABLE t", MAY_BE),
        ("DO f()", MAY_BE),
        ("", MAY_BE),
    ],
)
def test_statements_that_may_replace(text, stated):
    assert stated in reason(text)
    wide = reason(text, rows=head(columns=9, after=0b1011))
    assert wide.endswith("take a new snapshot of the table")
    # What sets no key is no REPLACE, if nobody says that it is one.
    unkeyed = reason(text, rows=head(after=0b010))
    assert unkeyed == "" if stated == MAY_BE else A_REPLACE in unkeyed
    assert stated in reason(text, rows=head(after=0b010), of=table(key=(0, 1)))
    assert stated in reason(text, rows=head(after=0b010), of=table(key=None))


@pytest.mark.parametrize(
    "text",
    ["INSERT INTO other VALUES ('t')", "INSERT INTO other.t (t) VALUES (1)", "DELETE FROM o"],
)
def test_rows_of_a_second_table_may_be_a_triggers(text):
    other = table("other", 2, has_triggers=True)
    assert MAY_BE in reason(text, other)
    assert reason(text, other, rows=head(after=0b010)) == ""  # that keeps a count, for one


def test_an_update_of_several_tables_keeps_what_it_does_not_name():
    other = table("other", 2)
    for text in (
        "UPDATE other JOIN t USING (id) SET t.a = 1",
        "UPDATE other AS o, shop.`T` SET a = 1",
        "SET STATEMENT lock_wait_timeout = 1 FOR UPDATE (t CROSS JOIN other) SET a = 1",
    ):
        assert reason(text, other) == ""
        assert MAY_BE in reason(text, table("other", 2, has_triggers=True))
    for text in ("UPDATE other SET a = 1", "UPDATE other, tt SET other.t = 't'", "UPDATE a JOIN"):
        assert MAY_BE in reason(text, other)


def test_only_the_beginning_of_a_statement_is_looked_at():
    assert reason("UPDATE t SET a = '" + "x" * (64 << 20)) == ""
