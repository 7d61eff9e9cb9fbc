"""`ibb inspect`: the worked example as a person sees it, and as JSON."""

import json

import pytest
from click.testing import CliRunner

from ibb.cli.main import ibb
from ibb.protocol.errors import IbbError
from ibb.protocol.gtid import Gtid
from ibb.storage.oob_forest import OobForest

from ..storage.test_writer import Rig

FIRST_EVENTS = bytes.fromhex(
    "00f15365020100" + "00003c000000000000000000" + "0100000000000000040000000074657374"
    "00435245415445205441424c452074312028612049" + "4e5429"
)

FILES = """\
file               bytes  status  page size  major  pages  last used   LSN  interval  oob from  XA from  state on page 1
binlog-000000.ibb   1536  ok            512      1      8          2  1000         2         0        -  (empty)
binlog-000001.ibb   4096  ok            512      1      8          1  1001         2         1        -  0-1-2
"""  # noqa: E501 - a table
FILE_0 = """\
file             binlog-000000.ibb
bytes            1536
status           ok
page size        512
major            1
pages            8
last used        2
LSN              1000
interval         2
oob from         0
XA from          -
state on page 1  (empty)

page  to  offset  status  chunks  used  first record  type    state
   1   1     512  ok           5   508             5  COMMIT  (empty)
   2   2    1024  ok           6   508            87  OOB     0-1-1
"""
PAGE_1 = """\
binlog-000000.ibb page 1: ok
offset  type        part   bytes  meaning
     0  GTID_STATE  whole      2  0 entries
     5  COMMIT      whole     99  group 0-1-1
   107  OOB         whole     25  node 0, leaf, 20 bytes
   135  OOB         whole     36  node 1, leaf, tree before it binlog-000000.ibb:619, 30 bytes
   174  OOB         first    331  node 2, inner, left binlog-000000.ibb:619, right binlog-000000.ibb:647, 324 bytes here
"""  # noqa: E501 - a table
PAGE_2 = """\
binlog-000000.ibb page 2: ok
offset  type        part   bytes  meaning
     0  GTID_STATE  whole      5  1 entries: 0-1-1
     8  OOB         last      76
    87  OOB         whole     16  node 3, leaf, tree before it binlog-000000.ibb:686, 10 bytes
   106  OOB         whole     16  node 4, leaf, tree before it binlog-000000.ibb:1111, 10 bytes
   125  COMMIT      whole     46  group 0-1-2, 5 pieces from binlog-000000.ibb:619 to binlog-000000.ibb:1130
   174  DUMMY       whole    331  padding
"""  # noqa: E501 - a table
COMMIT_2 = """\
binlog-000000.ibb:1149: COMMIT, 46 bytes
damaged: the group ends inside an event
group 0-1-2, 5 pieces from binlog-000000.ibb:619 to binlog-000000.ibb:1130

offset  event         bytes   timestamp      server  flags
     0  Gtid             38  1700000000           1      8
    38  Unknown  1094795585  1094795585  1094795585  16705

list 1: 5 pieces, first binlog-000000.ibb:619, last binlog-000000.ibb:1130
4 leaf binlog-000000.ibb:1130, 10 bytes
3 leaf binlog-000000.ibb:1111, 10 bytes
2 inner binlog-000000.ibb:686, 400 bytes
├── 0 leaf binlog-000000.ibb:619, 20 bytes
└── 1 leaf binlog-000000.ibb:647, 30 bytes

00000000  28 00 59 13 00 51 23 00 00 f1 53 65 a2 01 00 00  (.Y..Q#...Se....
00000010  00 26 00 00 00 00 00 00 00 08 00 02 00 00 00 00  .&..............
00000020  00 00 00 00 00 00 00 0c 00 00 00 00 00 00        ..............
"""
NODE_2 = """\
binlog-000000.ibb:686: OOB, 407 bytes
node 2, inner, left binlog-000000.ibb:619, right binlog-000000.ibb:647, 400 bytes
chunks of 331, 76 bytes

00000000  10 00 59 13 00 39 14 43 43 43 43 43 43 43 43 43  ..Y..9.CCCCCCCCC
"""
HEADER_0 = """\
00000000  fe fe 0d 01 09 00 00 00 01 00 00 00 00 00 00 00  ................
00000010  00 00 00 00 00 00 00 00 08 00 00 00 00 00 00 00  ................
00000020  e8 03 00 00 00 00 00 00 02 00 00 00 00 00 00 00  ................
00000030  00 00 00 00 00 00 00 00 ff ff ff ff ff ff ff ff  ................
"""


@pytest.fixture
def example(tmp_path):
    """Write the two files of the format's worked example (ibb-format 15.4)."""
    rig = Rig(pages=8, page_size=512, interval=2)
    rig.commit(Gtid(0, 1, 1), FIRST_EVENTS)
    forest = OobForest()
    for letter, count in ((b"A", 20), (b"B", 30), (b"C", 400), (b"D", 10), (b"E", 10)):
        rig.oob(forest, letter * count)
    rig.commit(Gtid(0, 1, 2), b"", forest, flags2=0x0C)
    pages = rig.writer.finish_file()
    rig.writer.begin_next_file()
    for file_no, count in ((0, pages), (1, 8)):
        image = b"".join(rig.page(file_no, page_no) for page_no in range(count))
        (tmp_path / f"binlog-00000{file_no}.ibb").write_bytes(image)
    return tmp_path


def inspect(*arguments):
    done = CliRunner().invoke(ibb, ["inspect", *map(str, arguments)])
    assert done.exit_code == 0, done.output
    return done.stdout


def objects(*arguments):
    return [json.loads(line) for line in inspect(*arguments, "--json").splitlines()]


@pytest.mark.parametrize(
    ("place", "text"),
    [
        ((), FILES),
        (("0",), FILE_0),
        (("binlog-000000.ibb",), FILE_0),
        (("0:1",), PAGE_1),
        (("0:2",), PAGE_2),
        (("0:2:125",), COMMIT_2),
    ],
)
def test_the_worked_example(example, place, text):
    found = inspect(example, *place)
    assert found.splitlines() == [line.rstrip() for line in text.splitlines()]


@pytest.mark.parametrize(("place", "text"), [("0:1:174", NODE_2), ("0:0", HEADER_0)])
def test_the_worked_example_in_hexadecimal(example, place, text):
    assert inspect(example, place).startswith(text)


def test_objects_say_what_they_are(example):
    files = objects(example)
    assert [file["name"] for file in files] == ["binlog-000000.ibb", "binlog-000001.ibb"]
    assert files[0] | {"object": "file", "xa_reference": None, "last": 2, "lsn": 1000} == files[
        0
    ] | {"last": 2}
    kinds = [(one["object"], one.get("page")) for one in objects(example, "1")]
    assert kinds == [("file", None), ("page", 1), ("page", 2)]
    unused = objects(example, "1")[-1]
    assert (unused["page"], unused["last"], unused["status"]) == (2, 7, "unused")
    chunks = objects(example, "0:1")
    assert [one["object"] for one in chunks] == ["page"] + ["chunk"] * 5
    (record,) = objects(example, "0:1:5")
    assert record["meaning"] == "group 0-1-1"
    assert bytes.fromhex(record["hex"])[39:] == FIRST_EVENTS
    assert [event["type"] for event in record["events"]] == ["Gtid", "Query"]
    assert objects(example, "0:0")[0]["hex"].startswith("fefe0d01")


@pytest.mark.parametrize(
    "place",
    [
        "x", "1:2:3:4", "1:-2", "binlog-1.ibb", "1:2:x", "0:99999999999999999999", "0:4294967296",
        "0:1:65537", "9" * 21, "0:" + "9" * 5000,
    ],
)  # fmt: skip
def test_places_that_are_none(example, place):
    done = CliRunner().invoke(ibb, ["inspect", str(example), place])
    assert done.exit_code == 2
    assert "is not FILE[:PAGE[:OFFSET]]" in done.stderr


@pytest.mark.parametrize("place", ["0:4294967295", "0:4294967295:65536", "9" * 19])
def test_places_where_nothing_is(example, place):
    for how in ([], ["--json"]):
        done = CliRunner().invoke(ibb, ["inspect", str(example), place, *how])
        assert done.exception is None or isinstance(done.exception, (SystemExit, IbbError))


def test_a_damaged_record_is_shown_as_far_as_it_goes(example):
    file = example / "binlog-000000.ibb"
    image = bytearray(file.read_bytes())
    image[1024 + 200] ^= 1
    file.write_bytes(image)
    assert "page 2: Page corruption" in inspect(example, "0:2")
    assert "group 0-1-2, 5 pieces" in inspect(example, "0:2")
    shown = inspect(example, "0:2:125")
    assert "damaged: Page corruption" in shown
    assert "node 2, inner" in inspect(example, "0:1")
    assert "Page corruption" in inspect(example, "0")
