"""The sample binlogs, each unpacked once a session."""

import json
import lzma
import tarfile
from pathlib import Path
from typing import NamedTuple

import pytest

SAMPLES = Path(__file__).parent.parent / "data" / "ibb"


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
            with tarfile.open(SAMPLES / f"{name}.tar.xz") as archive:
                archive.extractall(path, filter="data")
            plain, packed = (SAMPLES / f"{name}.expected.json{end}" for end in ("", ".xz"))
            text = lzma.decompress(packed.read_bytes()) if packed.exists() else plain.read_bytes()
            unpacked[name] = Sample(path, json.loads(text))
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
