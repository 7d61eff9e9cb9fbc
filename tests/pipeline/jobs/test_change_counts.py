"""Statistics add up, whatever the partitions, and count what stands."""

from collections import Counter

import pytest

from ibb.pipeline.errors import OptionError
from ibb.pipeline.jobs import change_counts
from ibb.pipeline.jobs.change_counts import check_dimensions, count_rows
from ibb.pipeline.jobs.job_source import source_options, with_defaults
from ibb.pipeline.options import SourceOptions
from ibb.pipeline.read_plan import groups_of, plan_read
from ibb.protocol.gtid_event import GtidFlag
from ibb.storage import Store

from ...protocol.rows import row_encoder as enc
from ...storage.events import query, xid
from ..published import OPTIONS, publish_events
from ..test_changes import MAP, SPECS, XA, changes, complete, prepare, write

DAY = 86_400
OTHER = enc.table_map([("id", enc.integer(4))]).replace(b"\x01t\0", b"\x01u\0")


def counted(path, by, largest=0, **given):
    """Return the counts by key, added up over partitions, and the largest groups."""
    options = SourceOptions.parse(
        {"path": str(path), "mode": "changes", "allowStatements": "true", **given}
    )
    totals, groups = {}, []
    for task in plan_read(options):
        for row in count_rows(task, options, by, largest):
            if row.gtid is not None:
                groups.append(row)
                continue
            total = totals.setdefault(tuple(getattr(row, name) for name in by), Counter())
            total.update(rows=row.rows, bytes=row.bytes, groups=row.groups)
    counts = {key: (one["rows"], one["bytes"], one["groups"]) for key, one in totals.items()}
    return counts, sorted(groups, key=lambda row: -row.bytes)


def size_of(path):
    options = SourceOptions.parse({"path": str(path)})
    return sum(
        len(piece)
        for task in plan_read(options)
        for group in groups_of(task)
        for piece in group.pieces()
    )


@pytest.fixture
def history(tmp_path):
    """Return a directory with three days of changes in two tables, and what changes no row."""
    update = enc.rows_event(enc.UPDATE, SPECS, [[(1, b"a"), (2, None)]] * 3)
    delete = enc.rows_event(enc.DELETE, [enc.integer(4)], [[(number,)] for number in range(5)])
    with Store.open(tmp_path, OPTIONS) as store:
        for number in range(1, 301):
            when = 1_700_006_400 + number // 100 * DAY  # midnight, UTC
            events = [write(1, 2), MAP, update, OTHER, delete][: 1 + 2 * (number % 3)]
            gtid = f"{number % 2}-{1 + number % 2}-{number}"
            publish_events(store, gtid, *events, query("." * 500), xid(1), timestamp=when)
        publish_events(store, "0-1-302", query("CREATE TABLE x (a int)"), flags=GtidFlag.STANDALONE)
        publish_events(store, "0-1-304", query("UPDATE d.t SET id = 7"), xid(1))
    return tmp_path


@pytest.mark.parametrize("partitions", ["1", "9"])
def test_counts_are_those_of_the_rows(history, partitions):
    counts, _ = counted(history, ("database", "table", "op"), minPartitions=partitions)
    rows = changes(history, allowStatements="true")
    by_table, groups = Counter(), {}
    for row in rows:
        key = row["database"], row["table"], row["op"]
        by_table[key] += 1
        groups.setdefault(key, set()).add(row["gtid"])
    none = (None, None, None)
    assert {key: one[0] for key, one in counts.items() if key != none} == by_table
    assert {key: one[2] for key, one in counts.items() if key != none} == {
        key: len(gtids) for key, gtids in groups.items()
    }
    assert counts[none][0] == 0
    assert counts[none][2] == 2  # the CREATE, and the UPDATE that is no row
    assert sum(one[1] for one in counts.values()) == size_of(history)


def test_days_and_servers_have_whole_groups(history):
    counts, _ = counted(history, ("day", "server"), minPartitions="5")
    assert len(counts) == 3 * 2 + 1 + 1
    assert sum(one[2] for one in counts.values()) == 302
    assert sum(one[1] for one in counts.values()) == size_of(history)
    (total,) = counted(history, ())[0].values()
    assert total == (len(changes(history, allowStatements="true")), size_of(history), 302)


def test_what_is_not_wanted_does_not_count(history):
    counts, groups = counted(history, ("table",), 3, tables="d.u", ops="delete")
    ((key, (rows, _, number)),) = counts.items()
    assert (key, rows, number) == (("u",), 500, 100)
    assert {tuple(group.tables) for group in groups} == {("d.u",)}


def test_the_largest_groups_are_kept(history):
    with Store.open(history, OPTIONS) as store:
        for number in (400, 402, 404):
            large = enc.rows_event(enc.WRITE, SPECS, [[(1, b"x" * 40)]] * number)
            publish_events(store, f"0-1-{number}", MAP, large, xid(1))
    _, groups = counted(history, (), 2, minPartitions="4")
    found = groups[:2]
    assert [(group.gtid, group.rows) for group in found] == [("0-1-404", 404), ("0-1-402", 402)]
    assert found[0].tables == ["d.t"]
    assert found[0].commit_time.timestamp() == 1_700_000_000


def test_rows_count_that_stand(tmp_path):
    with Store.open(tmp_path, OPTIONS) as store:
        publish_events(store, "0-1-1", write(1), query("ROLLBACK"))
        prepare(store, "0-1-2", write(2, 3))
        complete(store, "0-1-3", "COMMIT", XA)
        prepare(store, "0-1-4", write(4))
        complete(store, "0-1-5", "ROLLBACK", XA)
    counts, groups = counted(tmp_path, ("op",), 1)
    assert counts["insert",][0] == 2
    assert counts[None,][2] == 4
    assert groups[0].bytes > 100
    undone = len(write(4)) - len(MAP)
    assert sum(one[1] for one in counts.values()) == size_of(tmp_path) - undone


def test_many_keys_are_given_out_as_they_come(history, monkeypatch):
    whole, _ = counted(history, ("day", "table", "op"))
    monkeypatch.setattr(change_counts, "KEYS_MAX", 2)
    monkeypatch.setattr(change_counts, "STAGES_MAX", 1)
    monkeypatch.setattr(change_counts, "STAGE_ROWS", 2)
    assert counted(history, ("day", "table", "op"))[0] == whole


def test_there_is_only_so_much_to_count_by():
    check_dimensions(("op", "day"))
    with pytest.raises(OptionError, match=r"option by: 'hour' is none of day, server"):
        check_dimensions(("op", "hour"))


def test_a_source_is_a_directory_or_a_server():
    assert source_options("s3://b/x", endingGtid=None, tables=("a.b", "c.d")) == {
        "path": "s3://b/x",
        "tables": "a.b,c.d",
    }
    assert source_options("mariadb://u@h", ["tlsCa=a=b"]) == {
        "url": "mariadb://u@h",
        "tlsCa": "a=b",
    }
    with pytest.raises(OptionError, match="'x' is not NAME=VALUE"):
        source_options("b", ["x"])
    assert with_defaults({"ALLOWstatements": "false"}, allowStatements="true", mode="m") == {
        "ALLOWstatements": "false",
        "mode": "m",
    }
