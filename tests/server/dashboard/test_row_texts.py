"""Changed rows in words."""

from decimal import Decimal

import pytest

from ibb.protocol.gtid import Gtid
from ibb.protocol.gtid_event import encode_gtid_event
from ibb.server.dashboard import row_texts
from ibb.server.dashboard.group_look import list_groups, look_into
from ibb.server.dashboard.row_texts import ROWS_MAX, RowTexts
from ibb.storage.position import Position

from ...protocol.rows.row_encoder import (
    DELETE,
    UPDATE,
    WRITE,
    blob,
    decimal,
    integer,
    real,
    rows_event,
    table_map,
    varchar,
)
from ...storage.events import TIMESTAMP, query, xid
from ...storage.events import rows_event as untyped_rows_event

COLUMNS = ("id", "what", "price", "share", "more")
SPECS = [integer(4), varchar(100), decimal(10, 2), real(8), blob(1)]
FIRST = (7, b"tea", Decimal("12.50"), 0.5, b"\xff\x00")
SECOND = (-8, b"it's", Decimal("-0.05"), -2.0, b"plain")


def the_table(**options):
    return table_map(list(zip(COLUMNS, SPECS, strict=True)), **options)


@pytest.fixture
def texts():
    found = RowTexts()
    found.add_table(the_table())
    return found


def test_rows_are_told_as_they_were_and_as_they_are(texts):
    first = "id=7, what='tea', price=12.50, share=0.5, more=X'ff00'"
    second = "id=-8, what='it''s', price=-0.05, share=-2.0, more='plain'"
    assert texts.rows_of(rows_event(WRITE, SPECS, [[FIRST], [SECOND]])) == [
        f"insert {first}",
        f"insert {second}",
    ]
    assert texts.rows_of(rows_event(DELETE, SPECS, [[FIRST]])) == [f"delete {first}"]
    assert texts.rows_of(rows_event(UPDATE, SPECS, [[FIRST, SECOND]])) == [
        f"update {first} to {second}"
    ]


def test_columns_without_names_have_numbers():
    found = RowTexts()
    found.add_table(the_table(metadata=False))
    (row,) = found.rows_of(rows_event(WRITE, SPECS, [[FIRST]]))
    assert row == "insert @1=7, @2='tea', @3=12.50, @4=0.5, @5=X'ff00'"


def test_null_is_told_and_what_is_long_is_cut(texts):
    (row,) = texts.rows_of(rows_event(WRITE, SPECS, [[(1, None, None, None, b"\xc3\xa9" * 120)]]))
    assert row.startswith("insert id=1, what=NULL, price=NULL, share=NULL, more='éé")
    assert row.endswith("é'...")
    assert len(row) < 200


def test_so_many_rows_are_told(texts):
    told = texts.rows_of(rows_event(WRITE, SPECS, [[FIRST]] * (ROWS_MAX + 5)))
    assert len(told) == ROWS_MAX + 1
    assert told[-1] == "and more rows"


def test_what_cannot_be_told_is_no_error(texts, monkeypatch):
    event = rows_event(WRITE, SPECS, [[FIRST]])
    assert RowTexts().rows_of(event) == ["the table of these rows is not known"]
    for end in range(len(event)):
        assert isinstance(texts.rows_of(event[:end]), list)
    assert "cannot be told" in texts.rows_of(event[:-3])[0]
    damaged = RowTexts()
    damaged.add_table(the_table()[:-8])
    monkeypatch.setattr(row_texts, "TABLES_MAX", 0)
    damaged.add_table(the_table())
    assert damaged.rows_of(event) == ["the table of these rows is not known"]


def test_a_look_into_a_group_tells_its_rows(store):
    gtid = Gtid(0, 1, 11)
    events = the_table() + rows_event(WRITE, SPECS, [[FIRST]]) + untyped_rows_event(100_000)
    with store.begin() as group:
        group.write(encode_gtid_event(gtid, TIMESTAMP, 0) + query("BEGIN") + events + xid(5))
        group.commit(gtid)
    (row,) = [row for row in list_groups(store, "binlog-000000.ibb", 0, 200).rows
              if row["Gtid"] == "0-1-11"]  # fmt: skip
    look = look_into(store, Position(0, row["Position"]))
    told = [row["Rows"] for row in look.rows]
    assert told[:3] == [[], [], []]
    assert told[3][0].startswith("insert id=7, what='tea'")
    assert "too large" in told[4][0]
