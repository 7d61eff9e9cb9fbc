"""Where tables go that are dropped, and those that wait for a name."""

import pytest

from ibb.pipeline.tables.row_changes import TableName
from ibb.pipeline.tables.state_folder import StateFolder
from ibb.pipeline.tables.table_folders import TableFolders, table_at, table_uri
from ibb.protocol.gtid import Gtid

T, U = TableName("shop", "t"), TableName("shop", "u\u00e9")
GTID = Gtid(0, 1, 7)


@pytest.mark.parametrize("root", ["s3://lake/t/", "/lake/t"])
def test_folders_are_named_as_the_server_names_files(root):
    uri = table_uri(root, TableName("shop", "a b/\u00fc"))
    assert uri == f"{root.rstrip('/')}/shop/a@0020b@002f@00fc"
    for name in (T, U, TableName("d%b", "@0041"), TableName("..", "a@0020")):
        assert table_at(table_uri(root, name)) == name


@pytest.fixture
def lake(tmp_path):
    return tmp_path / "~lake"


@pytest.fixture
def folders(lake):
    roots = (str(lake / name) for name in ("", "dropped", "waiting"))
    return TableFolders(StateFolder(str(lake / "own")), *roots, lambda name, uri: (name, uri))


def make(lake, text):
    (lake / "shop/t").mkdir(parents=True)
    (lake / "shop/t/file").write_text(text)


def found(lake):
    return {str(path.relative_to(lake).parent): path.read_text() for path in lake.rglob("file")}


def test_one_that_is_dropped_again_by_the_same_group_gets_a_number(folders, lake):
    assert not folders.put_aside(T, str(GTID))
    for text in "abc":
        make(lake, text)
        assert folders.put_aside(T, str(GTID))
    names = ("t@0-1-7", "t@0-1-7~2", "t@0-1-7~3")
    assert found(lake) == {f"dropped/shop/{name}": text for name, text in zip(names, "abc")}  # noqa: B905


def test_one_waits_under_its_new_name(folders, lake):
    make(lake, "a")
    assert not folders.waits(U, GTID)
    folders.let_wait(T, U, GTID)
    assert found(lake) == {"waiting/shop/u@00e9@0-1-7": "a"}
    assert folders.waits(U, GTID)
    assert not folders.waits(U, Gtid(0, 1, 8))
    assert folders.open_waiting(U, GTID) == (U, str(lake / "waiting/shop/u@00e9@0-1-7"))
    folders.end_wait(U, GTID)
    assert found(lake) == {"shop/u@00e9": "a"}


def test_what_waits_for_nothing_any_more_goes_where_dropped_ones_go(folders, lake):
    folders.put_all_waiting_aside()
    for text, name, gtid in (("a", T, GTID), ("b", U, GTID), ("c", T, Gtid(0, 1, 8))):
        make(lake, text)
        folders.let_wait(T, name, gtid)
    folders.put_waiting_aside(U, Gtid(0, 1, 8))  # nothing
    folders.put_waiting_aside(T, GTID)
    folders.put_all_waiting_aside()
    assert found(lake) == {
        "dropped/shop/t@0-1-7": "a",
        "dropped/shop/u@00e9@0-1-7": "b",
        "dropped/shop/t@0-1-8": "c",
    }
