"""What a Spark stream had in a soak: each group once, whatever it was that ended it."""

import pytest

from .soak_spark import SoakSpark, why_no_spark


@pytest.fixture
def spark(tmp_path):
    return SoakSpark(tmp_path, 1)


@pytest.mark.parametrize(
    ("lines", "number", "wrong"),
    [
        (["batch 0 1 5 5", "batch 1 6 6 1"], 6, []),
        (["batch 0 1 5 5", "batch 0 1 5 5", "batch 3 6 8 3"], 8, []),
        (["batch 0 1 5 5", "batch 1 7 8 2"], 8, ["Spark: batch 1 has (7, 8, 2) behind 5"]),
        (["batch 0 1 5 4"], 5, ["Spark: batch 0 has (1, 5, 4) behind 0"]),
        (["batch 0 1 5 5", "batch 1 5 6 2"], 6, ["Spark: batch 1 has (5, 6, 2) behind 5"]),
        (["batch 0 1 5 5", "batch 1 2 4 3"], 5, ["Spark: batch 1 has (2, 4, 3) behind 5"]),
        (["batch 0 1 5 5", "batch 0 1 6 6"], 5,
         ["Spark: batch 0 had (1, 5, 5), and then (1, 6, 6)"]),
        (["what is this"], 0, ["Spark: what is this"]),
    ],
)  # fmt: skip
def test_groups_that_are_lost_or_come_twice_are_seen(spark, lines, number, wrong):
    for line in lines:
        spark.take(line)
    assert (spark.number, spark.wrong) == (number, wrong)


def test_only_whole_lines_are_taken(spark, tmp_path):
    said = tmp_path / "said"
    said.write_text("batch 0 1 5 5\nbatch 1 6 1")
    assert spark.look() == 5
    with said.open("a") as more:
        more.write("0 5\nfailed 12.5 the relay went\n")
    assert (spark.look(), spark.wrong) == (10, [])
    assert spark.failures == [(12.5, "the relay went")]


def test_without_java_it_is_said_what_is_missing(monkeypatch, tmp_path):
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert "Java" in why_no_spark()
