"""Tables made like another that was read anew meanwhile: the columns are those of then."""

from dataclasses import replace

import pytest

from ibb.pipeline.tables.errors import PipelineError

from .modelled import table
from .test_deaths import A, B, try_disks

WIDE = [{**row, "n": 5} for row in (A, B)]


def altered(source):
    """Make tables like one before and behind changes of its columns, key and name."""
    source.sql("CREATE TABLE u LIKE t", u=table("id name", "id"))
    source.insert("shop.u", A)
    source.sql("ALTER TABLE t ADD n INT DEFAULT 5", t=table("id name n", "id", WIDE))
    source.sql("CREATE TABLE v LIKE t", v=table("id name n", "id"))
    source.insert("shop.v", WIDE[0])
    source.sql("ALTER TABLE t DROP name, DROP PRIMARY KEY, ADD PRIMARY KEY (n, id)", t=last("n id"))
    source.sql("CREATE TABLE w LIKE t", w=table("id n", "n id"))
    source.insert("shop.w", {"id": 1, "n": 2})
    source.sql("ALTER TABLE t ADD m INT", t=table("id n m", "n id", narrow(m=None)))


def last(key):
    return table("id n", key, narrow())


def narrow(**more):
    return [{"id": row["id"], "n": 5, **more} for row in (A, B)]


def read_anew(source, deaths, lake, before, name):
    """Read a table anew where the stream has only come to *before*, then let all come."""
    source.seen = before
    deaths.run(lake, name)
    source.seen = source.view_at


@pytest.mark.parametrize("lives", [0, 1])
def test_of_a_table_that_was_read_anew_the_columns_are_those_of_then(
    source, deaths, tmp_path, lives
):
    lake, before = tmp_path / "lake", source.seen
    deaths.run(lake)
    altered(source)
    source.seen = before  # the snapshot is ahead of what has come
    disks = deaths.run(lake, "shop.t")
    source.seen = source.view_at
    if not lives:
        deaths.run(lake)
        deaths.check(lake)
    else:
        assert len(disks) > 2
        try_disks(deaths, disks, (2, 100), 0)


def test_they_are_known_behind_a_restart_between_the_statements(source, deaths, tmp_path):
    lake, before = tmp_path / "lake", source.seen
    deaths.run(lake)
    altered(source)
    source.seen = before
    deaths.run(lake, "shop.t")
    for seen in range(before + 1, source.view_at + 1):
        source.seen = seen
        deaths.run(lake)
    deaths.check(lake)


def test_of_one_that_was_renamed_and_read_anew_under_its_new_name(source, deaths, tmp_path):
    lake, before = tmp_path / "lake", source.seen
    deaths.run(lake)
    source.sql("RENAME TABLE t TO r", t=None, r=table("id name", "id", [A, B]))
    source.sql("CREATE TABLE u LIKE r", u=table("id name", "id"))
    source.insert("shop.u", A)
    source.sql("ALTER TABLE r ADD n INT DEFAULT 5", r=table("id name n", "id", WIDE))
    read_anew(source, deaths, lake, before, "shop.r")
    deaths.run(lake)
    deaths.check(lake)


def test_a_name_that_was_read_anew_gives_no_other_table_its_rows(source, deaths, tmp_path):
    """Until the other one was read anew, too."""
    lake, before = tmp_path / "lake", source.seen
    deaths.run(lake)
    source.sql("RENAME TABLE t TO r", t=None, r=table("id name", "id", [A, B]))
    source.sql("CREATE TABLE t (n INT)", t=table("n"))
    source.insert("shop.t", {"n": 1})
    read_anew(source, deaths, lake, before, "shop.t")
    with pytest.raises(PipelineError, match=r"gets the rows of shop\.t, which was read anew"):
        deaths.run(lake)
    read_anew(source, deaths, lake, before, "shop.r")
    deaths.run(lake)
    deaths.check(lake)


def test_of_one_that_was_dropped_and_made_anew(source, deaths, tmp_path):
    lake, before = tmp_path / "lake", source.seen
    deaths.run(lake)
    source.sql("DROP TABLE t", t=None)
    source.sql("CREATE TABLE t (n INT)", t=table("n"))
    source.sql("CREATE TABLE u LIKE t", u=table("n"))
    source.insert("shop.u", {"n": 1})
    source.sql("ALTER TABLE t ADD m INT", t=table("n m"))
    read_anew(source, deaths, lake, before, "shop.t")
    deaths.run(lake)
    deaths.check(lake)


def test_with_an_older_ledger_they_are_those_of_an_older_version(source, deaths, tmp_path):
    """Also where the table that is made so was dropped since."""
    lake = tmp_path / "lake"
    deaths.run(lake)
    ledger = (lake / "_ibb/ledger.json").read_bytes()
    source.sql("CREATE TABLE u LIKE t", u=table("id name", "id"))
    source.insert("shop.u", A)
    source.sql("DROP TABLE u", u=None)
    source.sql("ALTER TABLE t ADD n INT DEFAULT 5", t=table("id name n", "id", WIDE))
    deaths.run(lake)
    (lake / "_ibb/ledger.json").write_bytes(ledger)
    deaths.run(lake)
    deaths.check(lake)


def test_what_nobody_knows_stops(source, deaths, tmp_path):
    """The table was not one of the pipeline's, when the other was made like it."""
    lake, before = tmp_path / "lake", source.seen
    everything = deaths.config
    deaths.config = replace(everything, exclude=("shop.t",))
    deaths.run(lake)
    altered(source)
    source.seen = before
    deaths.config = everything
    deaths.run(lake, "shop.t")
    source.seen = source.view_at
    with pytest.raises(PipelineError, match=r"made like shop\.t, whose columns then are not known"):
        deaths.run(lake)


UNCLEAR = [
    "ALTER TABLE t TRUNCATE PARTITION p0",
    "ALTER TABLE t CONVERT TO CHARACTER SET utf8mb4, ADD n INT",
    "CREATE OR REPLACE TABLE t (id INT PRIMARY KEY, n INT) WITH SYSTEM VERSIONING",
]


@pytest.mark.parametrize("sql", UNCLEAR)
def test_what_is_not_known_to_a_table_read_anew_behind_it_is_passed(source, deaths, tmp_path, sql):
    lake, before = tmp_path / "lake", source.seen
    deaths.run(lake)
    source.sql(sql, t=table("id n", "id", [{"id": 1, "n": 5}]))
    source.insert("shop.t", {"id": 2, "n": 6})
    with pytest.raises(PipelineError, match=r"cannot be followed.* new snapshot of the table"):
        deaths.run(lake)
    read_anew(source, deaths, lake, before, "shop.t")
    deaths.run(lake)
    deaths.check(lake)


def test_what_it_is_then_is_not_known_to_a_table_made_like_it(source, deaths, tmp_path):
    lake, before = tmp_path / "lake", source.seen
    deaths.run(lake)
    source.sql(UNCLEAR[1], t=table("id n", "id", [{"id": 1, "n": 5}]))
    source.sql("CREATE TABLE u LIKE t", u=table("id n", "id"))
    read_anew(source, deaths, lake, before, "shop.t")
    with pytest.raises(PipelineError, match=r"made like shop\.t, whose columns then are not known"):
        deaths.run(lake)


def test_rows_logged_as_a_statement_stop_while_any_table_lacks_them(source, deaths, tmp_path):
    lake, before = tmp_path / "lake", source.seen
    deaths.run(lake)
    source.sql("UPDATE v SET name = 'c'")  # v may be a view on any table
    read_anew(source, deaths, lake, before, "shop.t")
    with pytest.raises(PipelineError, match="rows are logged as a statement"):
        deaths.run(lake)
    deaths.run(lake, "*.*")
    deaths.check(lake)
