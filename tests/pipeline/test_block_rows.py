"""Rows read in blocks of groups are those of the same groups read one by one."""

import json
import random
import struct

import pyarrow as pa
import pytest

from ibb.pipeline import change_rows, group_choice, row_events
from ibb.pipeline.options import SourceOptions
from ibb.pipeline.read_plan import plan_read
from ibb.pipeline.row_tags import NUMBERS, RowTags
from ibb.pipeline.rows import columns_of, rows_of
from ibb.pipeline.schema_sources import schemas_of
from ibb.protocol.errors import FormatError
from ibb.protocol.event import EventType, build_event
from ibb.protocol.gtid import Gtid, GtidPosition
from ibb.protocol.gtid_event import GtidEvent, GtidExtraFlag, GtidFlag, XaId
from ibb.storage import Store
from ibb.storage.group_reader import GroupReader

from ..protocol.rows import row_encoder as enc
from ..storage.events import query, xid
from .published import OPTIONS

LATIN1 = 8
XA_END = struct.pack("<BIII", 0, 1, 1, 0) + b"x"
GROUPS = 160
TIME = 1_700_000_000
TABLES = {
    b"a": [("id", enc.integer(4)), ("note", enc.varchar(50, LATIN1))],
    b"b": [("id", enc.integer(8)), ("text", enc.compressed_blob(4, 45))],
    b"c": [("id", enc.integer(2)), ("x", enc.char(20)), ("y", enc.real(8))],
}
VALUES = {
    b"a": lambda rng: (rng.randrange(1000), rng.randbytes(rng.randrange(40))),
    b"b": lambda rng: (rng.randrange(1000), rng.choice((None, b"much" * 300, b""))),
    b"c": lambda rng: (rng.randrange(1000), b"text", rng.random()),
}


class OneByOne:
    """Gives no blocks."""

    def __init__(self, pages, start):
        self._reader = GroupReader(pages, start)

    def next(self):
        return self._reader.next()

    @property
    def position(self):
        return self._reader.position


def table_map(name, number):
    """Return the table map of a table, by any number."""
    event = enc.table_map(TABLES[name], key=[0]).replace(b"\1d\0", b"\1%s\0" % name, 1)
    return event[:19] + number.to_bytes(6, "little") + event[25:]


def rows_event(rng, name, number):
    code = rng.choice((enc.WRITE, enc.UPDATE, enc.DELETE))
    specs = [spec for _, spec in TABLES[name]]
    images = 2 if code == enc.UPDATE else 1
    rows = [[VALUES[name](rng) for _ in range(images)] for _ in range(rng.choice((1, 1, 1, 5, 40)))]
    event = enc.rows_event(code, specs, rows, compressed=rng.random() < 0.1)
    return event[:19] + number.to_bytes(6, "little") + event[25:]


def changes(rng):
    """Return table maps and rows events of some tables."""
    events = []
    for _ in range(rng.choice((0, 1, 1, 1, 3))):
        name, number = rng.choice(list(TABLES)), rng.randrange(2**48)
        events.append(table_map(name, number))
        events += [rows_event(rng, name, number) for _ in range(rng.choice((1, 1, 4)))]
    return b"".join(events)


def head(rng, gtid):
    """Return a GTID event as 12.3 or an older server writes it."""
    flags, extra = int(GtidFlag.TRANSACTIONAL), {}
    commit_id = rng.choice((None, 77))
    if commit_id is not None:
        flags |= int(GtidFlag.GROUP_COMMIT_ID)
    if rng.random() < 0.5:
        extra = {"flags_extra": int(GtidExtraFlag.THREAD_ID), "thread_id": rng.randrange(2**32)}
    return GtidEvent(gtid, TIME + gtid.seq // 4, flags, commit_id, **extra).encode()


def group(rng, gtid):
    """Return the events of a group, of which some are not for the kernel."""
    dice = rng.random()
    if dice < 0.05:
        back = query("SAVEPOINT s") + changes(rng) + query("ROLLBACK TO s")
        return head(rng, gtid) + changes(rng) + back + xid(1)
    if dice < 0.08:
        event = GtidEvent(gtid, TIME, int(GtidFlag.STANDALONE | GtidFlag.DDL))
        return event.encode() + query("CREATE TABLE d.z (i INT)")
    if dice < 0.1:
        event = GtidEvent(gtid, TIME, int(GtidFlag.PREPARED_XA), xa_id=XaId(1, b"x", b""))
        end = build_event(EventType.XA_PREPARE, XA_END, timestamp=TIME, server_id=1)
        return event.encode() + changes(rng) + end
    if dice < 0.15:
        return head(rng, gtid) + changes(rng) + query("INSERT of much" + "x" * 9000) + xid(1)
    return head(rng, gtid) + changes(rng) + xid(1)


def made(path, rng):
    """Write a history of two domains; return its GTIDs."""
    gtids = []
    with Store.open(path, OPTIONS) as store:
        for number in range(1, GROUPS + 1):
            gtids.append(Gtid(rng.choice((0, 0, 0, 7)), rng.choice((1, 2)), number))
            with store.begin() as writer:
                writer.write(group(rng, gtids[-1]))
                writer.commit(gtids[-1], wait=False)
        store.sync()
    return gtids


def read(options, begun=None):
    """Return all rows, in an order of their own, or why there are none."""
    parsed = SourceOptions.parse({"allowStatements": "true", **options})
    found = []
    try:
        columns, schemas = columns_of(parsed), schemas_of(parsed)
        for task in plan_read(parsed):
            for batch in rows_of(task, parsed, columns, schemas, begun):
                batch.validate(full=True)
                found += batch.to_pylist()
    except FormatError as error:
        return str(error)
    if parsed.table is not None:
        return found  # of one table they come in the order of the binlog
    return sorted(
        found, key=lambda row: (row["domain"], row["seq_no"], row["position"], row["row"])
    )


def both_ways(monkeypatch, options, begun=None):
    """Read both ways; return what came."""
    found = read(options, begun)
    with monkeypatch.context() as patch:
        patch.setattr(group_choice, "GroupRuns", OneByOne)
        patch.setattr(row_events, "SMALL_BYTES_MAX", -1)
        assert read(options, begun) == found
    return found


@pytest.fixture(scope="module", params=range(3))
def history(request, tmp_path_factory):
    rng = random.Random(request.param)
    path = tmp_path_factory.mktemp("history")
    return str(path), made(path, rng), rng


CHANGES = (
    "gtid,domain,server,seq_no,commit_time,position,row,table,op,key,before,after,thread,_group"
)
CASES = (
    {"mode": "changes", "columns": CHANGES},
    {"mode": "changes"},
    {"mode": "changes", "columns": CHANGES, "ops": "update"},
    {"mode": "changes", "columns": CHANGES, "ops": "insert,delete", "tables": "a.t,b.t"},
    {"mode": "changes", "columns": CHANGES, "tables": "c.t"},
    {"mode": "changes", "columns": CHANGES, "domains": "7"},
    {"mode": "changes", "columns": CHANGES, "startingTime": "2023-11-14T22:13:30Z"},
    {"mode": "changes", "columns": CHANGES, "endingTime": "2023-11-14T22:13:30Z"},
    {"table": "a.t"},
    {"table": "b.t", "images": "both"},
    {"table": "c.t", "minPartitions": "7", "ops": "delete"},
)


@pytest.mark.parametrize("options", CASES)
def test_the_same_rows_come(options, history, monkeypatch):
    path, _, _ = history
    assert len(both_ways(monkeypatch, {"path": path, **options})) > 10


def test_so_they_do_with_little_room(history, monkeypatch):
    path, _, _ = history
    options = {"path": path, "mode": "changes", "columns": CHANGES}
    rows = read(options)
    for limit, most in (("TAGS_MAX", 7), ("HELD_BYTES_MAX", 3000), ("VERSIONS_MAX", 1)):
        with monkeypatch.context() as patch:
            patch.setattr(change_rows, limit, most)
            assert both_ways(monkeypatch, options) == rows


def small_group(gtid, *events):
    head = GtidEvent(gtid, TIME, int(GtidFlag.TRANSACTIONAL)).encode()
    return b"".join((head, *events, xid(1)))


def publish(path, groups):
    """Write groups of table a.t, each with these events; return their GTIDs."""
    gtids = [Gtid(0, 1, number) for number in range(1, len(groups) + 1)]
    with Store.open(path, OPTIONS) as store:
        for gtid, events in zip(gtids, groups, strict=True):
            with store.begin() as writer:
                writer.write(small_group(gtid, *events))
                writer.commit(gtid, wait=False)
        store.sync()
    return gtids


def test_rows_keep_their_order_where_table_maps_differ_in_flags(tmp_path, monkeypatch):
    """Of two primaries one may have a trigger, which its table maps tell; it is one table."""
    plain = enc.table_map(TABLES[b"a"])
    triggered = plain[:25] + b"\x01\x40" + plain[27:]
    assert triggered != plain
    maps = [triggered if number % 2 else plain for number in range(1, 41)]
    publish(tmp_path, [(one, insert(number)) for number, one in enumerate(maps, 1)])
    for ops in ({}, {"ops": "insert"}):
        found = both_ways(monkeypatch, {"path": str(tmp_path), "table": "d.t", **ops})
        assert [row["id"] for row in found] == list(range(1, 41))


def test_of_a_table_that_is_alone_some_kinds_of_changes_may_be_wanted(tmp_path, monkeypatch):
    whole = enc.table_map(TABLES[b"a"])
    gone = [enc.rows_event(enc.DELETE, SPECS, [[(number, b"")]]) for number in range(100)]
    publish(tmp_path, [(whole, insert(number), gone[number]) for number in range(100)])
    found = both_ways(monkeypatch, {"path": str(tmp_path), "table": "d.t", "ops": "delete"})
    assert [row["id"] for row in found] == list(range(100))


SPECS = [spec for _, spec in TABLES[b"a"]]


def insert(number):
    return enc.rows_event(enc.WRITE, SPECS, [[(number, b"n%d" % number)]])


def test_each_row_has_the_schema_of_its_group(tmp_path, monkeypatch):
    bare = enc.table_map(TABLES[b"a"], metadata=False)
    publish(tmp_path, [(bare, insert(number)) for number in range(1, 41)])

    def schema(note, **since):
        columns = [{"name": "id", "type": "int(11)"}, {"name": note, "type": "varchar(50)"}]
        columns[1]["charset"] = "latin1"
        return {"database": "d", "table": "t", "columns": columns, **since}

    tables = [schema("old"), schema("new", since="0-1-11"), schema("newest", since="0-1-31")]
    file = tmp_path / "schemas.json"
    file.write_text(json.dumps({"tables": tables}))
    options = {"mode": "changes", "columns": CHANGES, "schemaFile": str(file)}
    found = both_ways(monkeypatch, {"path": str(tmp_path), **options})
    names = [row["after"][1][0] for row in found]
    assert names == ["old"] * 10 + ["new"] * 20 + ["newest"] * 10


@pytest.mark.parametrize("bad", [1, 5, 200])
def test_an_event_that_is_damaged_is_named_by_its_group(bad, tmp_path, monkeypatch):
    whole = enc.table_map(TABLES[b"a"])
    groups = [[whole, insert(number)] for number in range(1, 201)]
    groups[bad - 1][1] = enc.rows_event(enc.WRITE, SPECS[:1], [[(1,)]])
    publish(tmp_path, groups)
    error = both_ways(monkeypatch, {"path": str(tmp_path), "table": "d.t"})
    assert error == f"group 0-1-{bad}: rows event of 1 columns behind a table map of 2"


@pytest.mark.parametrize("bad", [3, 150])
def test_so_is_a_table_map(bad, tmp_path, monkeypatch):
    whole = enc.table_map(TABLES[b"a"])
    groups = [[whole, insert(number)] for number in range(1, 201)]
    groups[bad - 1][0] = whole[:9] + (len(whole) - 20).to_bytes(4, "little") + whole[13:-20]
    publish(tmp_path, groups)
    for columns in ({}, {"columns": CHANGES}):  # with the statement, too: group by group
        options = {"path": str(tmp_path), "mode": "changes", **columns}
        assert both_ways(monkeypatch, options).startswith(f"group 0-1-{bad}: Table_map event: ")


@pytest.mark.parametrize("bad", [3, 150])
def test_a_group_without_a_number_ends_the_read(bad, tmp_path, monkeypatch):
    with Store.open(tmp_path, OPTIONS) as store:
        for number in range(1, 201):
            gtid, events = Gtid(0, 1, number), (enc.table_map(TABLES[b"a"]), insert(number))
            group = small_group(gtid, *events)
            if number == bad:
                group = group[:19] + bytes(8) + group[27:]
            store.commits.commit_group(object(), gtid, [], group)
        store.sync()
    options = {"path": str(tmp_path), "mode": "changes", "columns": CHANGES}
    error = both_ways(monkeypatch, options)
    assert error == "GTID event with sequence number 0 in domain 0"


@pytest.mark.parametrize(("begun", "reads"), [("0-1-60", False), ("0-1-200", True)])
def test_a_stream_stops_at_columns_that_it_has_not(begun, reads, tmp_path, monkeypatch):
    other = [("id", enc.integer(8)), TABLES[b"a"][1]]
    changed = [spec for _, spec in other]
    groups = [[enc.table_map(TABLES[b"a"]), insert(number)] for number in range(1, 101)]
    groups += [
        [enc.table_map(other), enc.rows_event(enc.WRITE, changed, [[(number, b"")]])]
        for number in range(101, 201)
    ]
    publish(tmp_path, groups)
    options = {"path": str(tmp_path), "table": "d.t"}
    found = both_ways(monkeypatch, options, GtidPosition.parse(begun))
    if reads:
        assert len(found) == 200
    else:
        assert found.startswith("group 0-1-61: d.t: column id was changed from bigint to int")


def test_tags_take_parts_of_arrays():
    tags, numbers = RowTags(), pa.array(range(100, 120))
    tags.extend({name: numbers.slice(3, 5) for name in NUMBERS})
    tags.extend({name: numbers.slice(19) for name in NUMBERS})
    assert [tags.gtid(number).seq for number in range(6)] == [103, 104, 105, 106, 107, 119]
    assert tags.column("_group", pa.array([5])).to_pylist() == [119]


def test_tags_are_columns_from_any_number_on():
    tags = RowTags()
    for number in range(5):
        gtid = Gtid(number % 2, 2**32 - 1, 2**63 - 1 - number)
        thread = None if number == 3 else number
        event = GtidEvent(gtid, number, 0, flags_extra=16, thread_id=thread)
        tags.add(event, number, 10 + number, b"SELECT \xff" if number == 2 else None)
    assert (len(tags), tags.gtid(4)) == (5, Gtid(0, 2**32 - 1, 2**63 - 5))
    for lines in ([1, 1, 2, 3], [1, 3], [2]):
        rows = pa.array(lines)
        assert tags.column("gtid", rows).to_pylist() == [
            f"{number % 2}-4294967295-{2**63 - 1 - number}" for number in lines
        ]
        threads = [None if number == 3 else number for number in lines]
        assert tags.column("thread", rows).to_pylist() == threads
        texts = ["SELECT \ufffd" if number == 2 else None for number in lines]
        assert tags.column("statement", rows).to_pylist() == texts
        assert tags.column("position", rows) == pa.array(lines, pa.int32())
        assert tags.column("_group", rows).to_pylist() == [10 + number for number in lines]
