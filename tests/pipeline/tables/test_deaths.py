"""
A pipeline that dies before any of its writes, and again in its next life, ends with right tables.

Not at random moments: the disk is kept as it was before each write, and a process begins on each
of these disks. What that one may leave behind is tried in the same way.
"""

import shutil

import pytest

from .modelled import Source, table

A, B, C = ({"id": number, "name": name} for number, name in ((1, "a"), (2, "b"), (3, "c")))
ONE, TWO = {"n": 1}, {"n": 2}
WIDE_T = table("id name n", "id")
CREATE_T = "CREATE TABLE t (id INT PRIMARY KEY, name VARCHAR(9))"
CREATE_BAG = "CREATE TABLE bag (n INT)"


def begun(second=B):
    """Return a source with two tables and some rows."""
    source = Source()
    source.sql(CREATE_T, t=table("id name", "id"))
    source.sql(CREATE_BAG, bag=table("n"))
    source.insert("shop.t", A, second)
    source.insert("shop.bag", ONE, ONE)
    return source


def rows(source):
    source.update("shop.t", A, {"id": 9, "name": "moved"})
    source.delete("shop.bag", ONE)
    source.insert("shop.t", C, domain=7)
    source.insert("shop.bag", ONE, TWO)
    source.delete("shop.t", C, domain=7)


def columns(source):
    """Reshape a table behind rows of its own: the commit of the rows comes before it."""
    source.insert("shop.t", C)
    wide = [{**row, "n": 5} for row in (A, B, C)]
    source.sql("ALTER TABLE t ADD n INT DEFAULT 5", t=table("id name n", "id", wide))
    source.insert("shop.bag", TWO)
    source.insert("shop.t", {"id": 4, "name": "d", "n": 6})
    last = [{**row, "m": None} for row in source.models[-1][("shop", "t")].rows]
    source.sql("ALTER TABLE t ADD m INT", t=table("id name n m", "id", last))
    source.insert("shop.bag", TWO)


def truncate(source):
    source.insert("shop.bag", TWO)
    source.sql("TRUNCATE TABLE bag", bag=table("n"))
    source.insert("shop.bag", TWO)


def make(source):
    source.insert("shop.t", C)
    source.sql("CREATE TABLE u LIKE t", u=table("id name", "id"))
    source.insert("shop.u", A)
    text = "CREATE TABLE v (n INT)"
    source.create_select(text, "v", table("n", "", [ONE, ONE]))
    source.delete("shop.v", ONE)


def replace_with_another(source):
    """The first group of a batch makes the table where the batch begins."""
    source.sql("CREATE OR REPLACE TABLE t (n INT)", t=table("n"))
    source.insert("shop.t", ONE)
    source.insert("shop.bag", TWO)
    source.sql("CREATE OR REPLACE TABLE bag (m INT)", bag=table("m"))
    source.insert("shop.bag", {"m": 1})


def rename(source):
    source.insert("shop.t", C)
    source.rename(("t", "u"))
    source.insert("shop.u", {"id": 4, "name": "d"})
    source.sql(CREATE_T, t=table("id name", "id"))
    source.insert("shop.t", A)


def rename_and_reshape(source):
    source.insert("shop.t", C)
    wide = [{**row, "n": None} for row in (A, B, C)]
    source.sql("ALTER TABLE t ADD n INT, RENAME TO w", t=None, w=table("id name n", "id", wide))
    source.delete("shop.w", wide[0])


def cut_over(source):
    """Put a copy of a table in its place, as gh-ost and pt-online-schema-change do."""
    copies = [{**row, "n": 5} for row in (A, B, C)]
    source.sql("CREATE TABLE _t_new (id INT PRIMARY KEY, name VARCHAR(9), n INT)", _t_new=WIDE_T)
    source.insert("shop._t_new", *copies)
    source.insert("shop.t", C, domain=7)
    source.rename(("t", "_t_old"), ("_t_new", "t"))
    source.update("shop.t", copies[1], {"id": 4, "name": "d", "n": 6}, domain=7)
    source.delete("shop._t_old", A)


def swap(source):
    """Have two tables, of other columns and without a key the one, change their names."""
    source.insert("shop.t", C)
    source.insert("shop.bag", TWO)
    source.rename(("t", "tmp"), ("bag", "t"), ("tmp", "bag"))
    source.delete("shop.t", ONE)
    source.update("shop.bag", A, {"id": 1, "name": "moved"})


def drop(source):
    source.insert("shop.t", C, domain=7)
    source.insert("shop.bag", TWO)
    source.sql("DROP TABLE t, bag", t=None, bag=None)
    source.sql(CREATE_T, t=table("id name", "id"))
    source.insert("shop.t", B)


def drop_all(source):
    source.insert("shop.t", C)
    source.sql("DROP DATABASE shop", t=None, bag=None)
    source.sql(CREATE_T, t=table("id name", "id"))
    source.insert("shop.t", B)


def letters(source):
    """What cannot be decoded comes table by table, so its groups do not follow one another."""
    source.undecoded("shop.t")
    source.undecoded("shop.bag", "shop.t")
    source.insert("shop.t", C)
    source.undecoded("shop.t")
    source.sql("TRUNCATE TABLE bag", bag=table("n"))
    source.undecoded("shop.bag")


TOPICS = (
    *(rows, columns, truncate, make, replace_with_another, rename, rename_and_reshape),
    *(cut_over, swap, drop, drop_all, letters),
)


def try_disks(deaths, disks, cuts, lives):
    """Run a process on each of *disks*, of which the batches are cut so; then on what it left."""
    for disk in disks:
        deaths.source.batch_groups = cuts[lives % 2]
        left = deaths.run(disk, dies=lives > 0)
        deaths.check(disk)
        if lives:
            try_disks(deaths, left, cuts, lives - 1)
        shutil.rmtree(disk)


@pytest.mark.parametrize(("cuts", "lives"), [((1, 100), 1), ((100, 2), 0)])
@pytest.mark.parametrize("topic", TOPICS)
def test_no_write_is_a_wrong_moment_to_die(source, deaths, tmp_path, topic, cuts, lives):
    source.view_at = 3  # the snapshot; the last rows before the topic come by the stream
    lake = tmp_path / "lake"
    deaths.run(lake)
    topic(source)
    source.batch_groups = cuts[1 - lives % 2]
    disks = deaths.run(lake)
    deaths.check(lake)
    assert len(disks) > 2
    try_disks(deaths, disks, cuts, lives)


def test_the_first_snapshot_is_begun_anew(source, deaths, tmp_path):
    source.view_at = 3
    disks = deaths.run(tmp_path / "lake")
    assert len(disks) > 4
    try_disks(deaths, disks, (100, 100), 1)


@pytest.mark.parametrize("pattern", ["shop.t", "*.*"])
def test_a_later_snapshot_is_begun_anew_without_being_asked_for(source, deaths, tmp_path, pattern):
    lake, before = tmp_path / "lake", source.seen
    deaths.run(lake)
    columns(source)
    source.sql("DROP TABLE bag", bag=None)
    source.seen = before  # the stream comes later
    disks = deaths.run(lake, pattern)
    source.seen = source.view_at
    assert len(disks) > 2
    try_disks(deaths, disks, (100, 1), 1)


@pytest.mark.parametrize("topic", [make, rename, rename_and_reshape, cut_over, swap, drop])
def test_tables_that_a_dead_process_named_and_the_source_has_no_more_go(
    source, deaths, tmp_path, topic
):
    """As behind RESET MASTER: the groups that would have told of them never come again."""
    source.view_at = 3
    lake = tmp_path / "lake"
    deaths.run(lake)
    topic(source)
    disks = deaths.run(lake)
    gone = {name.table: None for name in source.models[-1]}
    source.sql("DROP DATABASE shop", **gone)
    source.sql("CREATE TABLE last (n INT)", last=table("n"))
    for disk in (lake, *disks):
        others = disk / "shop/of_others/file"
        others.parent.mkdir(exist_ok=True)
        others.write_text("no table of ours")
        deaths.run(disk, "*.*", dies=False)
        shutil.rmtree(others.parent)  # stays, whoever made it
        deaths.check(disk)
