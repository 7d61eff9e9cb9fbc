"""Options: each is documented, and errors name the one that is wrong."""

from pathlib import Path

import pytest

from ibb.pipeline.errors import OptionError
from ibb.pipeline.option_table import OPTIONS
from ibb.pipeline.options import SourceOptions

DOCUMENT = Path(__file__).parent.parent.parent / "docs" / "spark.md"


def parse(**options):
    return SourceOptions.parse({"path": "/d", **options})


def test_every_option_is_documented_with_its_default():
    lines = DOCUMENT.read_text().splitlines()
    for name, option in OPTIONS.items():
        (line,) = [line for line in lines if line.startswith(f"| `{name}` |")]
        assert line == f"| `{name}` | {option.default or '-'} | {option.meaning} |"


def test_names_are_read_in_any_case():
    options = parse(STARTINGGTID="0-1-5,2-1-3", minpartitions="4", maxPartitionBytes="3M")
    assert options.start == "0-1-5,2-1-3"
    assert (options.partitions_min, options.partition_bytes_max) == (4, 3 << 20)


def test_times_are_seconds_or_moments():
    options = parse(startingTime="1700000000.5", endingTime="2023-11-14T23:13:20+01:00")
    assert (options.since, options.before) == (1_700_000_000.5, 1_700_000_000.0)
    assert parse(startingTime="2023-11-14T22:13:20").since == 1_700_000_000.0


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("mode", "rows", "is none of groups, events, changes, table"),
        ("startingGtid", "0-1", "is not earliest or latest or a GTID list"),
        ("endingGtid", "earliest", "is not latest or a GTID list"),
        ("startingTime", "yesterday", "is not a time"),
        ("startingTime", "nan", "is no moment"),
        ("endingTime", "1e400", "is no moment"),
        ("minPartitions", "0", "is not a whole number from 1"),
        ("minPartitions", "²", "is not a whole number"),
        ("maxPartitionBytes", "big", "is not a size"),
        ("tables", "orders", "is not database.table"),
        ("ops", "truncate", "is none of insert, update, delete"),
        ("nonTransactional", "orders", "is not database.table"),
        ("allowStatements", "maybe", "is none of true, false"),
        ("domains", "4294967296", "is not a GTID domain"),
    ],
)
def test_errors_name_the_option(name, value, says):
    with pytest.raises(OptionError, match=rf"^option {name}: .*{says}"):
        parse(**{name: value})


def test_an_unknown_option_gets_the_one_that_was_meant():
    with pytest.raises(OptionError, match=r"option startGtid: .*did you mean startingGtid"):
        parse(startGtid="0-1-1")


def test_a_path_is_wanted():
    with pytest.raises(OptionError, match=r"option path: missing"):
        SourceOptions.parse({})


def test_domains_may_be_any_unsigned_number():
    assert parse(domains="0, 4294967295").domains == {0, 2**32 - 1}
