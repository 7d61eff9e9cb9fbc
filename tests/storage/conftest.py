"""The sample binlogs, each unpacked once a session."""

from pathlib import Path
from typing import NamedTuple

import pytest

from .. import sample_directories


class Sample(NamedTuple):
    path: Path
    expected: dict


@pytest.fixture(scope="session")
def sample(tmp_path_factory):
    """Return a function from a sample's name to its directory and what a reader must find."""
    unpacked = {}

    def unpack(name):
        if name not in unpacked:
            path = tmp_path_factory.mktemp(name)
            sample_directories.unpack(name, path)
            unpacked[name] = Sample(path, sample_directories.expected_of(name))
        return unpacked[name]

    return unpack


@pytest.fixture
def sample_copy(sample, tmp_path):
    """Return a function from a sample's name to a copy of it that may be damaged."""

    def copy(name):
        original = sample(name)
        for file in original.path.iterdir():
            (tmp_path / file.name).write_bytes(file.read_bytes())
        return Sample(tmp_path, original.expected)

    return copy
