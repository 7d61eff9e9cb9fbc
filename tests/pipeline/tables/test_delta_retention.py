"""The hours that a Delta table's log knows of: raised where they are too few, and lowered again."""

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from ibb.pipeline.tables.delta_retention import LOG_KEY, REMOVED_KEY, keep_known


@pytest.mark.parametrize(
    ("before", "hours", "after", "shorter"),
    [
        ({}, 168, {}, False),
        ({}, 500, {REMOVED_KEY: "interval 500 hours"}, True),
        ({}, 800, {REMOVED_KEY: "interval 800 hours", LOG_KEY: "interval 800 hours"}, True),
        ({REMOVED_KEY: "INTERVAL 3 weeks"}, 500, {REMOVED_KEY: "INTERVAL 3 weeks"}, False),
        ({REMOVED_KEY: "interval 1 day"}, 168, {REMOVED_KEY: "interval 168 hours"}, True),
        ({REMOVED_KEY: "interval '20' days"}, 481, {REMOVED_KEY: "interval 481 hours"}, True),
        ({LOG_KEY: "interval 1 day"}, 168, {LOG_KEY: "interval 720 hours"}, False),
        ({LOG_KEY: "interval 99999999999 weeks"}, 800, None, True),
    ],
)
def test_the_log_is_to_know_of_as_many_hours(tmp_path, before, hours, after, shorter):
    path = str(tmp_path / "t")
    write_deltalake(path, pa.table({"id": [1]}), configuration=before)
    assert keep_known(DeltaTable(path), hours) is shorter
    found = {**DeltaTable(path).metadata().configuration}
    assert found.pop("ibb.keep_hours", str(hours)) == str(hours)
    assert found == ({**before, REMOVED_KEY: "interval 800 hours"} if after is None else after)
    version = DeltaTable(path).version()
    assert keep_known(DeltaTable(path), hours) is False
    assert DeltaTable(path).version() == version  # no commit without a change


def test_what_the_pipeline_has_set_follows_its_setting_down_again(tmp_path):
    path = str(tmp_path / "t")
    write_deltalake(path, pa.table({"id": [1]}))
    assert keep_known(DeltaTable(path), 1000)
    assert not keep_known(DeltaTable(path), 200)
    settings = DeltaTable(path).metadata().configuration
    assert settings[REMOVED_KEY] == "interval 200 hours"
    assert settings[LOG_KEY] == "interval 720 hours"
    DeltaTable(path).vacuum(200)  # delta-rs refuses fewer hours than the table's
