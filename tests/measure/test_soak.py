"""A soak of some seconds is well, and one that is ended leaves nothing behind."""

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from ..integration.conftest import new_rig
from ..integration.waiting import wait_until
from .soak import SIGNALLED
from .soak_run import Soak
from .soak_spark import why_no_spark

pytestmark = [pytest.mark.live, pytest.mark.slow]
WORK_SECONDS = 4.0
SECONDS_MAX = 120.0  # for servers to start or to end, on a busy machine


def test_everything_is_restarted_and_ends_equal():
    said = []
    with new_rig() as rig:
        soak = Soak(rig, WORK_SECONDS, said.append, with_spark=not why_no_spark())
        soak.run()
        assert soak.wrong == []
        assert soak.reader.number == soak.pipeline.number == soak.reader.groups > 5
        assert soak.spark is None or soak.spark.number == soak.reader.number
    assert {name.split()[0] for _, name in soak.restarts} == {
        "relay",
        "pipeline",
        "primary",
        "replica",
    }
    assert any("read again" in line for line in said)
    assert {(one.relay.life, one.pipeline.life) for one in soak.samples} >= {(2, 2)}


def test_who_ends_a_soak_ends_its_servers_and_loses_its_folder(tmp_path):
    # A socket's name has 107 bytes at most, which pytest's folder may take for itself.
    with tempfile.TemporaryDirectory(prefix="ibb-") as place:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.measure.soak", f"--plot={tmp_path / 'soak.png'}"],
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"TMPDIR": place},
        )
        assert process.stdout is not None
        assert process.stdout.readline().startswith("from ")
        wait_until(lambda: len(processes_of(place)) >= 5, SECONDS_MAX, lambda: processes_of(place))
        process.send_signal(signal.SIGTERM)
        assert process.wait(SECONDS_MAX) == SIGNALLED + signal.SIGTERM
        process.stdout.close()
        assert processes_of(place) == []
        assert list(Path(place).iterdir()) == []


def processes_of(place):
    """Return the command lines that name *place*."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                words = (folder / "cmdline").read_bytes().split(b"\0")
            except (FileNotFoundError, ProcessLookupError):
                continue
            if any(place.encode() in word for word in words):
                found.append(b" ".join(words).decode())
    return found
