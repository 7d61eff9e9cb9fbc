"""The hours that a Delta table's log knows of: raised where they are too few, and lowered again."""

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from ibb.pipeline.tables.delta_retention import LOG_KEY, REMOVED_KEY, keep_known


def both(text):
    return {REMOVED_KEY: text, LOG_KEY: text}


@pytest.mark.parametrize(
    ("before", "hours", "after", "shorter"),
    [
        ({}, 168, {LOG_KEY: "interval 168 hours"}, False),
        ({}, 500, both("interval 500 hours"), True),
        (both("INTERVAL 3 weeks"), 500, both("INTERVAL 3 weeks"), False),
        (both("interval '20' days"), 481, both("interval 481 hours"), True),
        (both("interval 1 day"), 168, both("interval 168 hours"), True),
        (both("interval 168 hours"), 168, both("interval 168 hours"), False),
        ({LOG_KEY: "interval 1 day"}, 168, {LOG_KEY: "interval 168 hours"}, False),
        (both("interval 99999999999 weeks"), 800, both("interval 99999999999 weeks"), False),
    ],
)
def test_the_log_is_to_know_of_as_many_hours(tmp_path, before, hours, after, shorter):
    path = str(tmp_path / "t")
    write_deltalake(path, pa.table({"id": [1]}), configuration=before)
    assert keep_known(DeltaTable(path), hours) is shorter
    found = {**DeltaTable(path).metadata().configuration}
    assert found.pop("ibb.keep_hours", str(hours)) == str(hours)
    assert found == after
    version = DeltaTable(path).version()
    assert version == (before != after)
    assert keep_known(DeltaTable(path), hours) is False
    assert DeltaTable(path).version() == version  # no commit without a change


def test_what_the_pipeline_has_set_follows_its_setting_down_again(tmp_path):
    path = str(tmp_path / "t")
    write_deltalake(path, pa.table({"id": [1]}))
    assert keep_known(DeltaTable(path), 1000)
    assert not keep_known(DeltaTable(path), 200)
    settings = DeltaTable(path).metadata().configuration
    assert settings == {**both("interval 200 hours"), "ibb.keep_hours": "200"}
    DeltaTable(path).vacuum(200)  # delta-rs refuses fewer hours than the table's
