"""Tables that get each other's names by one statement, wherever the pipeline dies, exactly once."""

from dataclasses import replace

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from ibb.pipeline.ddl.cursor import UnclearError
from ibb.pipeline.tables.errors import PipelineError
from ibb.pipeline.tables.lake import Lake
from ibb.pipeline.tables.renames import moved

from .modelled import named, table
from .test_deaths import TWO, WIDE_T, A, B, C, begun, cut_over, swap, try_disks

T, OLD = named("shop.t"), named("shop._t_old")
KINDS = ["delta", "parquet"]


@pytest.fixture
def lake(tmp_path):
    return tmp_path / "lake"


def ring(source):
    """Three tables change their names in a ring, of which the last goes on."""
    source.rename(("t", "x"), ("bag", "t"), ("more", "bag"), ("x", "more"), ("more", "y"))
    source.update("shop.y", C, {"id": 3, "name": "moved"})
    source.insert("shop.bag", {"m": 2})
    source.insert("shop.t", TWO)


def rows_of(target):
    rows = [row for batch in target.batches() for row in batch.to_pylist()]
    return sorted(rows, key=repr)


def read_anew(source, deaths, lake, before, *names):
    """Have tables read anew while only the groups of *before* have come: ahead of the stream."""
    source.seen = before
    deaths.run(lake, *names)
    source.seen = source.view_at


def dropped(lake, name, kind="dropped"):
    return [path.name for path in (lake / "_ibb" / kind / "shop").glob(f"{name}@*")]


@pytest.mark.parametrize(
    ("pairs", "net"),
    [
        ("a-b", "a-b"),
        ("a-b c-d", "a-b c-d"),
        ("a-b b-c", "a-c"),
        ("a-b b-a", ""),
        ("a-old new-a", "a-old new-a"),
        ("a-x b-a x-b", "b-a a-b"),
        ("a-x b-a c-b x-c", "b-a c-b a-c"),
        ("a-x x-y b-a y-z", "b-a a-z"),
    ],
)
def test_names_change_one_after_the_other(pairs, net):
    assert moved([pair.split("-") for pair in pairs.split()]) == [
        tuple(pair.split("-")) for pair in net.split()
    ]


def test_two_tables_cannot_have_one_name():
    with pytest.raises(UnclearError, match="two tables get the name b"):
        moved([("a", "b"), ("c", "b")])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("topic", [cut_over, swap])
def test_rows_before_and_behind_in_one_batch(source, deaths, lake, topic, kind):
    """A batch that makes the copy, too, makes it again when it is replayed."""
    deaths.config = replace(deaths.config, format=kind)
    source.view_at, source.cuts_statements = 3, False
    deaths.run(lake)
    topic(source)
    disks = deaths.run(lake)
    deaths.check(lake)
    assert len(disks) > 10
    try_disks(deaths, disks, (100, 2), 0)


@pytest.mark.parametrize("kind", KINDS)
def test_a_ring_of_tables_with_and_without_keys(deaths, source, lake, kind):
    deaths.config = replace(deaths.config, format=kind)
    source.sql("CREATE TABLE more (m INT)", more=table("m"))
    source.insert("shop.more", {"m": 1})
    deaths.run(lake)
    source.insert("shop.t", C, domain=7)
    source.insert("shop.more", {"m": 1})
    ring(source)
    disks = deaths.run(lake)
    deaths.check(lake)
    assert len(disks) > 10
    try_disks(deaths, disks, (1, 100), 0)


@pytest.mark.parametrize("kind", KINDS)
def test_a_table_whose_new_name_is_not_wanted_is_put_aside_once(source, deaths, lake, kind):
    deaths.config = replace(deaths.config, format=kind, exclude=("shop._t_old",))
    source.view_at = 3
    deaths.run(lake)
    cut_over(source)
    disks = deaths.run(lake)
    assert len(disks) > 10
    for disk in (lake, *disks):
        source.batch_groups = 1
        deaths.run(disk, dies=False)
        deaths.check(disk)
        (name,) = dropped(disk, "t")
        again = disk / "shop/again"
        (disk / "_ibb/dropped/shop" / name).rename(again)
        old = Lake(replace(deaths.config, target=str(disk))).open(named("shop.again"))
        assert rows_of(old) == [A, B, C]


def test_a_name_on_the_way_need_not_be_wanted(source, deaths, lake):
    deaths.config = replace(deaths.config, exclude=("shop.tmp",))
    deaths.run(lake)
    swap(source)
    deaths.run(lake)
    deaths.check(lake)
    assert not (lake / "_ibb/dropped").exists()


def test_what_is_done_to_unwanted_tables_is_nothing(source, deaths, lake):
    deaths.config = replace(deaths.config, include=("shop.bag",))
    deaths.run(lake)
    source.sql("RENAME TABLE t TO x, x TO t, y TO x, z TO x")
    source.insert("shop.bag", TWO)
    deaths.run(lake)
    deaths.check(lake)


@pytest.mark.parametrize("kind", KINDS)
def test_a_history_of_one_of_the_names_begins_anew(source, deaths, lake, kind):
    deaths.config = replace(deaths.config, format=kind, history=("shop.t",))
    source.view_at = 3
    deaths.run(lake)
    cut_over(source)
    disks = deaths.run(lake)
    wanted = None
    for disk in (lake, *disks):
        source.batch_groups = 1
        deaths.run(disk, dies=False)
        deaths.check(disk)
        assert len(dropped(disk, "t", "dropped_history")) == 1
        history = Lake(replace(deaths.config, target=str(disk))).open_history(T)
        assert rows_of(history) == sorted(source.models[-1][T].rows, key=repr)
        wanted = history.versions if wanted is None else wanted
        assert history.versions == wanted
    assert len(disks) > 10


def test_a_copy_that_is_no_change_table_stops_until_the_table_was_read_anew(source, deaths, lake):
    deaths.config = replace(deaths.config, include=("shop.t", "shop.bag"))
    source.view_at = 3
    deaths.run(lake)
    cut_over(source)
    before = [A, B]
    advice = (
        r'gets the rows of shop\._t_new, which is no change table.*"shop\._t_\*".*RENAME TABLE.*'
        "Take a new snapshot"
    )
    with pytest.raises(PipelineError, match=advice):
        deaths.run(lake)
    opened = Lake(replace(deaths.config, target=str(lake)))
    assert rows_of(opened.open(T)) == before  # it is where it was
    disks = deaths.run(lake, "shop.t")
    source.insert("shop.t", {"id": 5, "name": "e", "n": 7})
    try_disks(deaths, [lake, *disks[1:]], (100, 1), 0)  # before it was not asked for yet


@pytest.mark.parametrize("unwanted", ["shop._t_*", "shop._t_new"])
def test_what_columns_the_copy_had_nobody_knows(source, deaths, lake, unwanted):
    deaths.config = replace(deaths.config, exclude=(unwanted,))
    deaths.run(lake)
    before = source.seen
    cut_over(source)
    source.sql("CREATE TABLE u LIKE t", u=WIDE_T)
    read_anew(source, deaths, lake, before, "shop.t", "shop._t_old")
    with pytest.raises(PipelineError, match=r"made like shop\.t, whose columns then are not known"):
        deaths.run(lake)


def test_a_table_that_was_read_anew_stays_known_where_its_name_goes_on(source, deaths, lake):
    """Of the three tables only the copy is none of the pipeline's, and nobody writes to any."""
    deaths.config = replace(deaths.config, exclude=("shop._t_new",))
    deaths.run(lake)
    before = source.seen
    source.sql("CREATE TABLE _t_new (id INT PRIMARY KEY, name VARCHAR(9), n INT)", _t_new=WIDE_T)
    source.rename(("t", "_t_old"), ("_t_new", "t"))
    read_anew(source, deaths, lake, before, "shop._t_old", "shop.t")
    deaths.run(lake)
    deaths.check(lake)
    source.sql("CREATE TABLE u LIKE t", u=WIDE_T)
    source.insert("shop.t", {"id": 5, "name": "e", "n": 7})
    deaths.run(lake)
    deaths.check(lake)


@pytest.mark.parametrize("kind", KINDS)
def test_a_history_of_a_table_that_went_without_a_trace_is_no_others(source, deaths, lake, kind):
    """Dropped with sql_log_bin = 0; the table that gets its name has no history so far."""
    deaths.config = replace(deaths.config, format=kind, history=("shop.t", "shop.x"))
    source.sql("CREATE TABLE x (id INT PRIMARY KEY, name VARCHAR(9))", x=table("id name", "id"))
    source.insert("shop.x", C)
    deaths.run(lake)
    del source.models[-1][named("shop.x")]
    source.rename(("bag", "x"), ("t", "bag"))
    source.insert("shop.x", TWO)
    deaths.run(lake)
    deaths.check(lake)
    opened = Lake(replace(deaths.config, target=str(lake)))
    assert opened.open_history(named("shop.x")).versions == 3
    assert not opened.open_history(T).exists
    assert [len(dropped(lake, name, "dropped_history")) for name in "tx"] == [1, 1]


def test_a_folder_of_somebody_else_is_put_out_of_the_way(source, deaths, lake):
    deaths.run(lake)
    cut_over(source)
    write_deltalake(str(lake / "shop/_t_old"), pa.table({"x": [1]}))
    deaths.run(lake)
    deaths.check(lake)
    assert len(dropped(lake, "_t_old")) == 1


def test_the_same_of_a_table_that_comes_alone(source, deaths, lake):
    deaths.config = replace(deaths.config, include=("shop.u", "shop.bag"))
    deaths.run(lake)
    source.rename(("t", "u"))
    with pytest.raises(
        PipelineError, match=r"shop\.u gets the rows of shop\.t, which is no change"
    ):
        deaths.run(lake)
    deaths.run(lake, "shop.u")
    source.insert("shop.u", C)
    deaths.run(lake)
    deaths.check(lake)


def test_rows_of_a_table_that_was_read_anew_are_no_other_tables(source, deaths, lake):
    """Until that one was read anew, too; then others are made like what it was here."""
    source.view_at, before = 3, source.seen
    deaths.run(lake)
    cut_over(source)
    source.sql("CREATE TABLE u LIKE t", u=WIDE_T)
    rows = [{**row, "m": None} for row in source.models[-1][T].rows]
    source.sql("ALTER TABLE t ADD m INT", t=table("id name n m", "id", rows))
    read_anew(source, deaths, lake, before, "shop.t")
    with pytest.raises(
        PipelineError, match=r"shop\._t_old gets the rows of shop\.t, which was rea"
    ):
        deaths.run(lake)
    read_anew(source, deaths, lake, before, "shop._t_old")
    source.insert("shop.t", {"id": 5, "name": "e", "n": 7, "m": 8})
    deaths.run(lake)
    deaths.check(lake)
    assert dropped(lake, "_t_new") == ["_t_new@0-1-7"]


def test_a_table_may_be_read_anew_behind_a_death(source, deaths, lake):
    """The old one waits for its name already, or its rows are gone: then all are read anew."""
    source.view_at = 3
    deaths.run(lake)
    cut_over(source)
    disks, gone = deaths.run(lake), []
    for disk in disks:
        try:
            deaths.run(disk, "shop.t", dies=False)
        except PipelineError as error:
            assert "shop._t_old gets the rows of shop.t" in str(error)  # noqa: PT017
            deaths.run(disk, "*.*", dies=False)
            gone.append(disk)
        deaths.check(disk)
    assert 2 < len(gone) < len(disks) - 2


def test_another_history_may_repeat_a_statement_that_a_death_cut_short(source, deaths, lake):
    """Under the same number, behind RESET MASTER; of the rows of before nothing comes back."""
    source.view_at = 3
    deaths.run(lake)
    cut_over(source)
    disks = [disk for disk in deaths.run(lake) if [*disk.glob("_ibb/renamed/shop/_t_old*")]]
    assert len(disks) > 2
    for disk in disks:
        vars(source).update(vars(begun({"id": 2, "name": "other"})))
        deaths.run(disk, "*.*", dies=False)
        cut_over(source)
        deaths.run(disk, dies=False)
        deaths.check(disk)
