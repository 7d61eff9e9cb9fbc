"""A few rounds of kill -9 of a pipeline; scripts/pipeline-kills runs many."""

import pytest

from .pipeline_rounds import PipelineRounds

pytestmark = [pytest.mark.live, pytest.mark.slow]


def test_a_pipeline_that_is_killed_loses_and_doubles_nothing(rig, tmp_path):
    rounds = PipelineRounds(rig, tmp_path, seed=1)
    rounds.prepare()
    assert rounds.run(4) == []
    assert rounds.kills == 4
