"""Profiles of small runs: the whole path is run, and the time is where the work is."""

import json
import time

import pytest
from click.testing import CliRunner

from ibb.bench import profiles
from ibb.bench.profiles import PATHS, profile
from ibb.bench.workbench import TINY, Workbench
from ibb.cli.main import ibb


@pytest.fixture(scope="module")
def data_folder(tmp_path_factory):
    return tmp_path_factory.mktemp("p")


@pytest.mark.parametrize("path", PATHS)
def test_each_path_takes_time_of_the_processor(path, data_folder):
    with Workbench(TINY, data_folder) as bench:
        found = profile(bench, path)
    assert found.processor > 0
    assert sum(share.share for share in found.modules) <= 1.0001


def spin(data, folder):
    end = time.process_time() + 0.3
    while time.process_time() < end:
        pass


def test_the_time_is_told_where_it_went(data_folder, monkeypatch):
    monkeypatch.setitem(profiles._PATHS, "serve", spin)
    with Workbench(TINY, data_folder) as bench:
        found = profile(bench, "serve-one-row")
    assert found.functions[0].place == "test_profiles.py spin"
    assert found.functions[0].share > 0.9


def test_the_command_prints_shares(data_folder):
    words = ["bench", "profile", "serve-bulk", "--scale", "tiny", "--data", str(data_folder)]
    text = CliRunner().invoke(ibb, words)
    assert text.exit_code == 0
    assert text.output.startswith("serve-bulk: ")
    told = json.loads(CliRunner().invoke(ibb, [*words, "--json"]).output)
    assert told["processor"] > 0
