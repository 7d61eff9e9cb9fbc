"""Table maps as MariaDB 10.11 writes them, and damaged ones."""

import struct

import pytest

from ibb.protocol.errors import FormatError
from ibb.protocol.rows.column import Column, ColumnType
from ibb.protocol.rows.table_layout import SchemaMismatch, layout_of
from ibb.protocol.rows.table_map import TableMap
from ibb.protocol.rows.table_schema import ColumnSchema, TableSchema

from . import row_encoder as enc

# With binlog_row_metadata=FULL and utf8mb4: CREATE TABLE t1 (id int unsigned primary key, y year,
# b bit(10), dd decimal(10,2) unsigned, f float unsigned, ti time(3), ts timestamp(2) null,
# c char(10), bi binary(5), c300 char(200), e enum('a', 'ä') charset latin1, s set('x','y'),
# g point, u uuid, i4 inet4, i6 inet6, vcc varchar(200) compressed, tc text compressed,
# bc blob compressed, l1 varchar(20) charset latin1, j json, bl blob, invi int invisible,
# gv int as (id+1) virtual, gs int as (id*2) stored)
BODY = bytes.fromhex(
    "150000000000 0100 01 64 00 02 7431 00 19 030d10f6041311fefefefefefffefefe8d8c8c0ffcfc030303"
    "20 02010a0204 0302fe28fe05ce20f701f80104fe10fe04fe102103020214000402 feffff01"
    "0101f0 020d3f002d022d072d082d0a080b2e 070101"
    "0447 026964 0179 0162 026464 0166 027469 027473 0163 026269 0463333030 0165 0173 0167 0175"
    "026934 026936 03766363 027463 026263 026c31 016a 02626c 04696e7669 026776 026773"
    "0b0208 2d 05050201780179 060502016101e4 080100"
)


def table_map():
    return TableMap.parse(enc.event(19, BODY))


def test_labels_in_binary_are_texts_that_differ():
    """As 10.11 writes them for ENUM('a', 'é', X'E4', X'FF41') CHARACTER SET binary."""
    body = bytes.fromhex(
        "150000000000 0100 01 64 00 01 74 00 01 fe 02 f701 01"
        "0402 0165 0a01 3f 060b 04 0161 02c3a9 01e4 02ff41"
    )
    (column,) = layout_of(TableMap.parse(enc.event(19, body))).columns
    assert column.labels == ("a", "é", r"\xe4", r"\xffA")
    assert column.is_known


def test_what_a_full_table_map_says():
    found = table_map()
    assert (found.number, found.database, found.table) == (21, "d", "t1")
    layout = layout_of(found)
    assert layout.key == (0,)
    assert layout.unknown == ()
    columns = {column.name: column for column in layout.columns}
    assert len(columns) == 25
    signs = {name: column.unsigned for name, column in columns.items()}
    assert {name for name, sign in signs.items() if sign} == {"id", "y", "dd", "f"}
    assert {name for name, sign in signs.items() if sign is False} == {"invi", "gv", "gs"}
    sets = {name: column.charset for name, column in columns.items() if column.charset}
    utf8 = {"c": "utf8mb4", "c300": "utf8mb4", "s": "utf8mb4", "vcc": "utf8mb4", "tc": "utf8mb4"}
    binary = dict.fromkeys(("bi", "g", "u", "i4", "i6", "bc", "bl"), "binary")
    assert sets == utf8 | binary | {"e": "latin1", "l1": "latin1", "j": "utf8mb4"}
    assert columns["e"].labels == ("a", "ä")
    assert columns["s"].labels == ("x", "y")
    assert columns["g"].geometry == 1
    assert [name for name, column in columns.items() if not column.nullable] == ["id"]
    assert columns["b"].column == Column(ColumnType.BIT, 2, 0, 10, 0)
    assert columns["dd"].column == Column(ColumnType.NEWDECIMAL, 5, 0, 10, 2)
    assert columns["ti"].column == Column(ColumnType.TIME2, 5, 0, 0, 3)
    assert columns["c300"].column == Column(ColumnType.STRING, 0, 2, 800, 0)
    assert columns["vcc"].column == Column(ColumnType.VARCHAR_COMPRESSED, 0, 2, 801, 0)


def test_every_cut_is_refused():
    event = enc.event(19, BODY)
    whole = {len(event)}
    for size in range(19, len(event)):
        cut = struct.pack("<IBIIIH", 0, 19, 1, size, 0, 0) + event[19:size]
        try:
            TableMap.parse(cut)
        except FormatError:
            continue
        whole.add(size)
    assert len(whole) == 9  # it may end behind any of its eight optional fields, or before them


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ((b"\x19\x03\x0d", b"\x19\x03\xc8"), "column type 200 is unknown"),
        ((b"\x19\x03\x0d", b"\x19\xf5\x0d"), "MySQL's binary JSON"),
        ((b"\x0a\x02\x04", b"\x0a\x0b\x04"), "metadata of a NEWDECIMAL column"),
        ((b"\x08\x01\x00", b"\x08\x01\x19"), "speaks of column 25 of 25"),
        ((b"\x07\x01\x01", b"\x01\x01\xf0"), "field 1 of a table map's metadata is there twice"),
        ((b"t1\0\x19", b"t1\x01\x19"), "a name does not end with NUL"),
        ((b"t1\0\x19\x03\x0d", b"t1\0\xfc\xff\xff"), "65535 columns"),
    ],
)
def test_what_no_server_writes_is_refused(change, message):
    assert BODY.count(change[0]) == 1
    with pytest.raises(FormatError, match=message):
        TableMap.parse(enc.event(19, BODY.replace(*change)))


COLUMNS = [
    ("id", enc.integer(4, unsigned=True)),
    ("word", enc.varchar(20)),
    ("kind", enc.enum("a", "b")),
    ("data", enc.blob(2)),
    ("u", enc.char(16, 63)),
]
SCHEMA = TableSchema(
    (
        ColumnSchema("id", "int(10) unsigned"),
        ColumnSchema("word", "varchar(20)", "latin1"),
        ColumnSchema("kind", "enum('a','it''s')", "utf8mb4"),
        ColumnSchema("data", "blob"),
        ColumnSchema("u", "uuid"),
    ),
    key=("ID", "word"),
)


def test_a_schema_says_what_the_table_map_does_not():
    layout = layout_of(TableMap.parse(enc.table_map(COLUMNS, metadata=False)), SCHEMA)
    assert [column.name for column in layout.columns] == ["id", "word", "kind", "data", "u"]
    assert layout.columns[0].unsigned
    assert [column.charset for column in layout.columns[1:4]] == ["latin1", "utf8mb4", "binary"]
    assert layout.columns[2].labels == ("a", "it's")
    assert layout.columns[4].special == "uuid"
    assert layout.key == (0, 1)
    assert layout.unknown == ()


def test_the_table_map_is_believed_before_the_schema():
    layout = layout_of(TableMap.parse(enc.table_map(COLUMNS, key=[1])), SCHEMA)
    assert layout.columns[1].charset == "utf8mb4"
    assert layout.columns[2].labels == ("a", "b")
    assert layout.columns[4].special == "uuid"
    assert layout.key == (1,)


@pytest.mark.parametrize(
    ("schema", "metadata"),
    [
        (TableSchema(SCHEMA.columns[:4]), False),
        (TableSchema((ColumnSchema("id", "bigint unsigned"), *SCHEMA.columns[1:])), False),
        (
            TableSchema(
                (*SCHEMA.columns[:3], ColumnSchema("data", "mediumblob"), *SCHEMA.columns[4:])
            ),
            False,
        ),
        (TableSchema((ColumnSchema("other", "int unsigned"), *SCHEMA.columns[1:])), True),
    ],
    ids=["count", "type", "size", "name"],
)
def test_a_schema_of_another_time_is_refused(schema, metadata):
    table = TableMap.parse(enc.table_map(COLUMNS, metadata=metadata))
    with pytest.raises(SchemaMismatch, match=r"the schema of d\.t has .* when they were written"):
        layout_of(table, schema)


def test_old_moments_are_read_where_a_schema_says_that_they_have_no_fraction():
    old = enc.Spec(12, b"", bytes)
    table = TableMap.parse(enc.table_map([("a", old)], metadata=False))
    assert layout_of(table).unknown == ("@1",)
    assert layout_of(table, TableSchema((ColumnSchema("a", "datetime"),))).unknown == ()
    with pytest.raises(SchemaMismatch, match=r"`a` of d\.t is of datetime\(6\) in the form"):
        layout_of(table, TableSchema((ColumnSchema("a", "datetime(6)"),)))


def test_types_of_a_definition():
    column = ColumnSchema("a", "INTEGER(10) UNSIGNED ZEROFILL")
    assert (column.type_name, column.unsigned) == ("int", True)
    assert ColumnSchema("a", "enum('unsigned','x) unsigned')").unsigned is False
    assert ColumnSchema("a", "character varying(20)").type_name == "varchar"
    assert ColumnSchema("a", r"set('it''s','a\'b','c\\')").labels == ("it's", "a'b", "c\\")
