"""A few rounds of kill -9 of a pipeline; scripts/pipeline-kills runs many."""

from random import Random

import pytest

from .pipeline_load import WideLoad
from .pipeline_rounds import PipelineRounds

pytestmark = [pytest.mark.live, pytest.mark.slow]


def test_a_pipeline_that_is_killed_loses_and_doubles_nothing(rig, tmp_path):
    rounds = PipelineRounds(rig, tmp_path, seed=1)
    rounds.prepare()
    assert rounds.run(4) == []
    assert rounds.kills == 4


def test_tables_of_all_types_that_are_killed_on_the_way(rig, tmp_path):
    load = WideLoad(Random(3), tables=8, rows=3000)
    rounds = PipelineRounds(rig, tmp_path, seed=3, load=load, histories=False)
    told = []
    rounds.prepare()
    assert rounds.run(2, told.append) == []
    assert (rounds.kills, load.is_done) == (2, True)
    assert f"{load.changed} rows changed, 2 of 2 kills" in told or told[-1] == "comparing"
