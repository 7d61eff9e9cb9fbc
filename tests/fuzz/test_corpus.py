"""Every input of the corpus still does no harm; the harness notices what does."""

import subprocess
import sys
from itertools import chain
from pathlib import Path
from types import SimpleNamespace

import pytest

from . import corpus, watch
from .session_targets import close_site
from .targets import TARGETS
from .watch import OverLimitError, Watched

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def _no_server_is_left():
    yield
    close_site()


@pytest.mark.parametrize("target", TARGETS)
def test_no_input_of_the_corpus_is_a_find(target):
    inputs = corpus.read(target)
    run = Watched(TARGETS[target].run)
    for data in inputs:
        run(data)
    assert len(inputs) > 20
    assert max(map(len, inputs)) <= corpus.INPUT_BYTES_MAX


def test_what_is_kept_is_read_again(tmp_path, monkeypatch):
    monkeypatch.setattr(corpus, "FOLDER", tmp_path / "corpus")
    assert corpus.read("packets") == []
    corpus.write("packets", [b"\n'\"\\", b"", bytes(range(256)), b""])
    assert corpus.read("packets") == [b"", b"\n'\"\\", bytes(range(256))]
    corpus.unpack("packets", tmp_path / "files")
    assert {path.read_bytes() for path in (tmp_path / "files").iterdir()} == set(
        corpus.read("packets")
    )


def test_a_hang_is_found_and_a_busy_machine_is_not(monkeypatch):
    seconds = iter((1.5, 0.1, 1.5, 1.5, 1.5))  # that the target takes, from one call to the next
    times = chain.from_iterable((0.0, taken) for taken in seconds)
    monkeypatch.setattr(watch, "time", SimpleNamespace(monotonic=lambda: next(times)))
    run = Watched(lambda _: None)
    run(b"")
    with pytest.raises(OverLimitError, match="for one input"):
        run(b"")


GROWING = """
from tests.fuzz import watch
watch.WARM_UP = 1
kept = []
run = watch.Watched(lambda data: kept.append(b"x" * len(data) * (1 << 20)))
for size in (70, 1, 30, 30, 30, 30):
    run(b"1" * size)
"""


def test_memory_is_found_that_grows_behind_the_start():
    """In a process of its own: what counts is the highest that one ever had."""
    ran = subprocess.run([sys.executable, "-c", GROWING], capture_output=True, text=True, cwd=ROOT)
    assert "OverLimitError: " in ran.stderr
    assert "MiB more than at the start" in ran.stderr


def test_an_exception_goes_on_to_libfuzzer():
    with pytest.raises(ZeroDivisionError):
        Watched(lambda data: 1 // len(data))(b"")
