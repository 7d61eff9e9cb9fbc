"""What is decoded from the binlog of a real server is what SELECT shows there, of every type."""

from decimal import Decimal

import pytest

from ibb.pipeline.row_batches import RowBatches
from ibb.pipeline.table_schemas import TableSchemas
from ibb.protocol.event import HEADER_SIZE, EventHeader, EventType, without_checksum
from ibb.protocol.gtid import Gtid
from ibb.protocol.rows.rows_event import OPS
from ibb.protocol.rows.table_layout import layout_of
from ibb.protocol.rows.table_map import TableMap
from ibb.protocol.rows.value_policy import NoDates, Times, Unknown, ValuePolicy

pytestmark = [pytest.mark.live, pytest.mark.xdist_group("row_values")]

COLUMNS = {
    "id": ("INT UNSIGNED PRIMARY KEY", "1", "4294967295"),
    "ti": ("TINYINT", "-128", "127"),
    "tu": ("TINYINT UNSIGNED", "0", "255"),
    "si": ("SMALLINT", "-32768", "32767"),
    "su": ("SMALLINT UNSIGNED", "0", "65535"),
    "mi": ("MEDIUMINT", "-8388608", "8388607"),
    "mu": ("MEDIUMINT UNSIGNED", "0", "16777215"),
    "ii": ("INT", "-2147483648", "2147483647"),
    "bi": ("BIGINT", "-9223372036854775808", "9223372036854775807"),
    "bu": ("BIGINT UNSIGNED ZEROFILL", "0", "18446744073709551615"),
    "fl": ("FLOAT", "-3.402823e38", "1.5"),
    "dl": ("DOUBLE", "-1.7976931348623157e308", "2.2250738585072014e-308"),
    "d1": ("DECIMAL(1,0)", "-9", "9"),
    "d9": ("DECIMAL(18,9)", "-999999999.999999999", "0.000000001"),
    "d38": ("DECIMAL(38,38)", f"-0.{'9' * 38}", f"0.{'0' * 37}1"),
    "d65": ("DECIMAL(65,30)", f"-{'9' * 35}.{'9' * 30}", "0.5"),
    "b1": ("BIT(1)", "b'0'", "b'1'"),
    "b9": ("BIT(9)", "b'100000001'", "b'1'"),
    "b64": ("BIT(64)", "0xFFFFFFFFFFFFFFFF", "b'0'"),
    "ye": ("YEAR", "1901", "0"),
    "da": ("DATE", "'0001-01-01'", "'9999-12-31'"),
    "dz": ("DATE", "'0000-00-00'", "'2024-02-31'"),
    **{
        f"dt{digits}": (
            f"DATETIME({digits})",
            "'0001-01-01 00:00:00.000001'",
            "'9999-12-31 23:59:59.123456'",
        )
        for digits in range(7)
    },
    "dtz": ("DATETIME(3)", "'0000-00-00 00:00:00'", "'2024-00-00 10:11:12.131'"),
    **{
        f"ts{digits}": (
            f"TIMESTAMP({digits}) NULL",
            "'1970-01-01 00:00:01'",
            "'2038-01-19 03:14:06.654321'",
        )
        for digits in range(7)
    },
    "tsz": ("TIMESTAMP(1) NULL", "'0000-00-00 00:00:00'", "'2001-09-09 01:46:40'"),
    **{
        f"t{digits}": (f"TIME({digits})", "'-838:59:58.999999'", "'838:59:59'")
        for digits in range(7)
    },
    "tn": ("TIME(6)", "'-00:00:00.000001'", "'00:00:00.5'"),
    "ch": ("CHAR(10)", "'a  '", "'äöü€😀'"),
    "cl": ("CHAR(255)", "''", "REPEAT('€', 255)"),
    "bn": ("BINARY(5)", "X'0001000000'", "X'FFFFFFFFFF'"),
    "bl": ("BINARY(255)", "X'00'", "REPEAT('x', 255)"),
    "vc": ("VARCHAR(63)", "''", "REPEAT('€', 63)"),
    "vl": ("VARCHAR(4000)", "'trailing  '", "REPEAT('€', 4000)"),
    "vb": ("VARBINARY(300)", "''", "REPEAT(X'00FF', 150)"),
    **{
        f"cs_{name}": (f"VARCHAR(20) CHARACTER SET {name}", "''", f"'{text}'")
        for name, text in {
            "latin1": "Ä€ß\u0081",
            "cp1251": "Привет",
            "greek": "Ωμέγα",
            "ucs2": "wörd語",
            "utf16": "😀",
            "utf16le": "😀x",
            "utf32": "😀y",
            "utf8mb3": "語",
            "ascii": "abc",
            "sjis": "日本",
            "cp932": "日本",
            "ujis": "日本",
            "eucjpms": "日本",
            "gbk": "中文",
            "gb2312": "中文",
            "big5": "中文",
            "euckr": "한글",
            "koi8r": "Привет",
            "hebrew": "שלום",
        }.items()
    },
    "bb1": ("TINYBLOB", "''", "REPEAT('b', 255)"),
    "bb2": ("BLOB", "X'00'", "REPEAT('b', 300)"),
    "bb3": ("MEDIUMBLOB", "X'00'", "REPEAT('b', 70000)"),
    "bb4": ("LONGBLOB", "X'00'", "REPEAT('b', 70001)"),
    "tx1": ("TINYTEXT", "''", "'€'"),
    "tx2": ("TEXT CHARACTER SET latin1", "'é'", "REPEAT('ÿ', 300)"),
    "tx4": ("LONGTEXT", "'x'", "REPEAT('€', 30000)"),
    "en": ("ENUM('a','ä€','')", "'ä€'", "''"),
    "el": ("ENUM('x','é') CHARACTER SET latin1", "'é'", "'x'"),
    "eb": ("ENUM('x','é') CHARACTER SET binary", "'é'", "'x'"),
    "sb": ("SET('x','ö') CHARACTER SET binary", "'x,ö'", "''"),
    "se": ("SET('x','y','zé')", "'x,zé'", "''"),
    "js": ("JSON", '\'{"a": [1, "ä"]}\'', "'null'"),
    "vcc": ("VARCHAR(500) COMPRESSED", "REPEAT('press ', 80)", "'short'"),
    "txc": ("TEXT COMPRESSED CHARACTER SET latin1", "REPEAT('é', 500)", "''"),
    "blc": ("LONGBLOB COMPRESSED", "REPEAT('z', 100000)", "X'00'"),
    "ge": ("GEOMETRY", "ST_GeomFromText('LINESTRING(0 0,1 1)', 4326)", "POINT(1, 2)"),
    "vi": ("INT AS (ti + 1) VIRTUAL", "DEFAULT", "DEFAULT"),
    "st": ("INT AS (ti * 2) STORED", "DEFAULT", "DEFAULT"),
    "hi": ("INT INVISIBLE DEFAULT 7", "5", "6"),
}
AS_SHOWN = ValuePolicy(no_dates=NoDates.TEXT, times=Times.TEXT, unknown=Unknown.BYTES)


@pytest.fixture(scope="module")
def primary(rig, mariadb_10):
    server = rig.primary(mariadb_10, "--binlog-format=ROW", "--character-set-server=utf8mb4")
    server.run("CREATE DATABASE d")
    return server


def change_rows(server, settings, *changes):
    """Make the table anew, change it, return the events of that; the last row set is selected."""
    names = ", ".join(COLUMNS)
    columns = ", ".join(f"{name} {kind}" for name, (kind, *_) in COLUMNS.items())
    server.run(
        "FLUSH BINARY LOGS",
        "SET sql_mode = 'ALLOW_INVALID_DATES', time_zone = '+00:00', NAMES utf8mb4",
        *settings,
        f"CREATE OR REPLACE TABLE d.t ({columns})",
        *(
            f"INSERT INTO d.t ({names}) VALUES ({', '.join(row[at] for row in COLUMNS.values())})"
            for at in (1, 2)
        ),
        "INSERT INTO d.t (id) VALUES (3)",
        *changes,
    )
    data = server.binlog_files()[-1].read_bytes()
    at = 4
    while at < len(data):
        header = EventHeader.unpack(data, at)
        if header.type != EventType.FORMAT_DESCRIPTION:
            yield without_checksum(data[at : at + header.length])
        at += header.length


def decode(events, policy=AS_SHOWN):
    """Return the batches of all rows events."""
    layout = batches = None
    for event in events:
        if event[4] == EventType.TABLE_MAP:
            layout = layout_of(TableMap.parse(event))
            batches = batches or RowBatches(layout, policy)
        elif event[4] in OPS:
            assert len(event) > HEADER_SIZE
            batches.add(event)
    batch = batches.take()
    batch.to_batch().validate(full=True)
    return batch


def selected(server):
    """Return what SELECT shows, as texts and bytes, in the order of `id`."""
    with server.connection(conv={}) as connection, connection.cursor() as cursor:
        cursor.execute("SET time_zone = '+00:00'")
        cursor.execute(f"SELECT {', '.join(COLUMNS)} FROM d.t ORDER BY id")
        return [dict(zip(COLUMNS, row, strict=True)) for row in cursor.fetchall()]


def shown(name, value):
    """Return a decoded value as SELECT shows it."""
    kind = COLUMNS[name][0]
    if isinstance(value, str) and kind.endswith("CHARACTER SET binary"):
        return value.encode()
    if value is None or isinstance(value, str | bytes):
        return value
    if kind.startswith("BIT"):
        size = (int(kind[4:-1]) + 7) // 8
        return int(value).to_bytes(size, "big")
    if isinstance(value, float):
        return value
    if kind.startswith("YEAR"):
        return f"{value:04}"
    if isinstance(value, Decimal):
        return f"{value:020f}" if "ZEROFILL" in kind else f"{value:f}"
    return str(value)


def compare(found, wanted, names=COLUMNS):
    for name in names:
        value, text = shown(name, found[name]), wanted[name]
        if isinstance(value, float):
            digits = 1e-6 if COLUMNS[name][0] == "FLOAT" else 1e-15
            assert value == pytest.approx(float(text), rel=digits), name
        else:
            assert value == text, name


@pytest.mark.parametrize("image", ["FULL", "NOBLOB", "MINIMAL"])
@pytest.mark.parametrize("compress", [0, 1], ids=["plain", "compressed"])
def test_rows_are_what_select_shows(primary, image, compress):
    events = list(
        change_rows(
            primary,
            [
                "SET GLOBAL binlog_row_metadata = FULL",
                f"SET GLOBAL log_bin_compress = {compress}, GLOBAL log_bin_compress_min_len = 10",
                f"SET binlog_row_image = {image}",
            ],
            "UPDATE d.t SET tx2 = 'neu', en = 'a' WHERE id = 1",
            "DELETE FROM d.t WHERE id = 3",
        )
    )
    assert any(event[4] == EventType.WRITE_ROWS_COMPRESSED_V1 for event in events) == bool(compress)
    batch = decode(events)
    first, last = selected(primary)
    assert batch.op.to_pylist() == ["insert"] * 3 + ["update", "delete"]
    after, before = batch.after.to_pylist(), batch.before.to_pylist()
    names = {column.name: number for number, column in enumerate(batch.layout.columns)}
    compare(after[1], last)
    compare(after[0], {**first, "tx2": "é", "en": "ä€"})
    given = {name for name, value in after[2].items() if value is not None}
    assert given == ({"id"} if image == "MINIMAL" else {"id", "hi"})  # what is left to its default
    assert batch.has_column("after", names["hi"])[2].as_py() == (image != "MINIMAL")
    changed = [name for name in COLUMNS if batch.has_column("after", names[name])[3].as_py()]
    compare(after[3], first, changed)
    there = [name for name in COLUMNS if batch.has_column("before", names[name])[3].as_py()]
    compare(before[3], {**first, "tx2": "é", "en": "ä€"}, there)
    assert before[4]["id"] == 3
    assert {"tx2", "en"} <= set(changed)
    assert (len(there) < len(COLUMNS)) == (image != "FULL")
    assert (len(changed) < len(COLUMNS)) == (image != "FULL")
    assert (there == ["id"]) == (image == "MINIMAL")


@pytest.mark.parametrize("metadata", ["NO_LOG", "MINIMAL"])
def test_what_less_metadata_leaves_unknown(primary, metadata):
    events = change_rows(
        primary, [f"SET GLOBAL binlog_row_metadata = {metadata}, GLOBAL log_bin_compress = 0"]
    )
    batch = decode(events)
    rows = selected(primary)
    unknown = batch.layout.unknown
    assert batch.layout.columns[0].name == "@1"
    kinds = [kind for kind, *_ in COLUMNS.values()]
    labelled = [number for number, kind in enumerate(kinds) if kind[:4] in ("ENUM", "SET(")]
    if metadata == "MINIMAL":
        assert unknown == tuple(f"@{number + 1}" for number in labelled)
        for number, name in enumerate(COLUMNS):
            if number not in labelled:
                value = batch.after.to_pylist()[1][f"@{number + 1}"]
                compare({name: value}, rows[2], [name])
    else:
        assert {"@1", "@2"} <= set(unknown)
        assert batch.after["@1"].to_pylist() == [1, -1, 3]


def test_a_schema_of_the_server_makes_up_for_missing_metadata(primary):
    events = list(
        change_rows(
            primary,
            ["SET GLOBAL binlog_row_metadata = NO_LOG, GLOBAL log_bin_compress = 0"],
            "ALTER TABLE d.t ADD uu UUID, ADD i4 INET4, ADD i6 INET6,"
            " ADD lb ENUM('it''s', 'b\\\\c', 'é')",
            "UPDATE d.t SET uu = '123e4567-e89b-12d3-a456-426655440000', i4 = '192.0.2.0',"
            " i6 = '::ffff:192.0.2.1', lb = 2 WHERE id = 1",
            "UPDATE d.t SET uu = '00000000-0000-0000-0000-000000000000', i4 = '0.0.0.0', i6 = '::',"
            " lb = 1 WHERE id = 3",
        )
    )
    schemas = TableSchemas.from_server(primary.rows, assume_unchanged=True)
    schema = schemas.find("d", "t", Gtid(0, 1, 1))
    maps = [TableMap.parse(event) for event in events if event[4] == EventType.TABLE_MAP]
    layout = layout_of(maps[-1], schema)
    assert layout.unknown == ()
    assert layout.key == (0,)
    batches = RowBatches(layout, AS_SHOWN)
    for event in events:
        if event[4] == EventType.UPDATE_ROWS_V1:
            batches.add(event)
    after = batches.take().after.to_pylist()
    rows = selected(primary)
    compare(after[-2], rows[0])
    added = ("uu", "i4", "i6", "lb")
    wanted = primary.rows(f"SELECT {', '.join(added)} FROM d.t WHERE id IN (1, 3) ORDER BY id")
    found = [tuple(image[name] for name in added) for image in after[-2:]]
    assert found == [tuple(map(str, row)) for row in wanted]
    assert found[0][3] == "b\\c"
