"""Names that no change table has: RENAME TABLE IF EXISTS, and of views; at each death, once."""

from dataclasses import replace

import pytest

from ibb.pipeline.tables.errors import PipelineError
from ibb.pipeline.tables.lake import Lake
from ibb.pipeline.tables.renames import moved

from .modelled import named, table
from .test_deaths import CREATE_T, ONE, TWO, A, C, try_disks
from .test_renames import KINDS, read_anew, rows_of

SEEN = {"bag": 5, "none": 1, "u": 4}  # versions behind `those_that_are_there`


@pytest.fixture
def lake(tmp_path):
    return tmp_path / "lake"


@pytest.mark.parametrize(
    ("pairs", "net"),
    [
        ("a-b", "a-b"),
        ("x-a", ""),
        ("x-y a-b x-a", "a-b"),
        ("a-b a-c", "a-b"),
        ("a-b b-c b-d", "a-c"),
        ("a-b c-a b-c b-d x-b", "c-a a-c"),
        ("a-b b-a a-d", "a-d"),
    ],
)
def test_names_that_nothing_has_are_left_out(pairs, net):
    assert moved([pair.split("-") for pair in pairs.split()], {"a", "c"}.__contains__) == [
        tuple(pair.split("-")) for pair in net.split()
    ]


def swap_what_is_there(source):
    """The name that is missing is a table's before the batch ends."""
    source.insert("shop.t", C)
    source.rename(
        ("none", "bag"), ("t", "x"), ("bag", "t"), ("none", "bag"), ("x", "bag"), if_there=True
    )
    source.update("shop.bag", C, {"id": 3, "name": "moved"})
    source.insert("shop.t", TWO)
    source.sql(CREATE_T.replace("TABLE t", "TABLE none"), none=table("id name", "id"))
    source.insert("shop.none", A)


@pytest.mark.parametrize("kind", KINDS)
def test_a_name_that_was_missing_is_a_tables_in_the_same_batch(source, deaths, lake, kind):
    deaths.config = replace(deaths.config, format=kind)
    source.cuts_statements = False
    deaths.run(lake)
    swap_what_is_there(source)
    disks = deaths.run(lake)
    deaths.check(lake)
    assert len(disks) > 10
    try_disks(deaths, disks, (100, 2), 0)


def those_that_are_there(source):
    """Some names are missing, at first or by then; one that was is a table's afterwards."""
    source.insert("shop.t", C)
    source.delete("shop.bag", ONE)
    source.rename(("none", "bag"), if_there=True)
    source.rename(("t", "x"), ("bag", "t"), ("none", "bag"), ("x", "y"), ("x", "z"), if_there=True)
    source.update("shop.y", C, {"id": 3, "name": "moved"})
    source.insert("shop.t", TWO)
    source.rename(("t", "u"), ("t", "v"), if_there=True)
    source.sql(CREATE_T.replace("TABLE t", "TABLE none"), none=table("id name", "id"))
    source.insert("shop.none", A)
    source.rename(("bag", "none"), ("y", "bag"), if_there=True)
    source.insert("shop.bag", {"id": 4, "name": "d"})
    source.insert("shop.u", TWO)


@pytest.mark.parametrize("kind", KINDS)
def test_of_names_some_are_missing(source, deaths, lake, kind):
    deaths.config = replace(deaths.config, format=kind)
    deaths.run(lake)
    those_that_are_there(source)
    disks = deaths.run(lake)
    deaths.check(lake)
    assert {path.name for path in (lake / "shop").iterdir()} == {"bag", "none", "u"}
    assert not (lake / "_ibb/dropped").exists()
    assert len(disks) > 10
    try_disks(deaths, disks, (1, 100), 0)


@pytest.mark.parametrize("kind", KINDS)
def test_a_history_goes_on_where_a_name_was_missing(source, deaths, lake, kind):
    deaths.config = replace(deaths.config, format=kind, history=("shop.*",))
    deaths.run(lake)
    those_that_are_there(source)
    for disk in (*deaths.run(lake), lake):
        source.batch_groups = 1
        deaths.run(disk, dies=False)
        deaths.check(disk)
        opened = Lake(replace(deaths.config, target=str(disk)))
        versions = {name: opened.open_history(named(f"shop.{name}")).versions for name in SEEN}
        assert versions == SEEN


@pytest.mark.parametrize("pairs", ["v TO w", "v TO x, w TO v, x TO w", "v TO x, x TO v"])
def test_views_get_other_names(source, deaths, lake, pairs):
    deaths.config = replace(deaths.config, history=("shop.*",))
    deaths.run(lake)
    source.sql(f"RENAME TABLE {pairs}")
    source.insert("shop.bag", TWO)
    source.sql("ALTER TABLE IF EXISTS v RENAME TO w")
    source.insert("shop.t", C)
    disks = deaths.run(lake)
    assert {path.name for path in (lake / "shop").iterdir()} == {"bag", "t"}
    assert len(disks) > 2
    try_disks(deaths, disks, (1, 100), 0)


def test_a_table_that_nobody_knows_stops_at_its_first_row(source, deaths, lake):
    deaths.run(lake)
    source.sql("RENAME TABLE unknown TO u", u=table("n"))
    source.insert("shop.bag", TWO)
    deaths.run(lake)
    assert rows_of(Lake(replace(deaths.config, target=str(lake))).open(named("shop.bag"))) == [
        ONE,
        ONE,
        TWO,
    ]
    source.insert("shop.u", ONE)
    with pytest.raises(PipelineError, match=r"shop\.u: the stream changes it .* needs a snapshot"):
        deaths.run(lake)


def test_a_table_read_anew_ahead_of_a_name_that_may_have_been_missing(source, deaths, lake):
    """Whether the one that has the old name now had it then is not known here."""
    deaths.run(lake)
    before = source.seen
    source.rename(("t", "u"), if_there=True)
    source.sql(CREATE_T, t=table("id name", "id"))
    source.insert("shop.t", C)
    source.view_at = len(source.models) - 1
    read_anew(source, deaths, lake, before, "shop.t")
    with pytest.raises(
        PipelineError, match=r"shop\.u gets the rows of shop\.t, which was read ane"
    ):
        deaths.run(lake)
    read_anew(source, deaths, lake, before, "shop.u")
    deaths.run(lake)
    deaths.check(lake)
