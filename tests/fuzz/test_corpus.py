"""Every input of the corpus still does no harm; the harness notices what does."""

import time

import pytest

from . import corpus, watch
from .session_targets import close_site
from .targets import TARGETS
from .watch import OverLimitError, Watched


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
    monkeypatch.setattr(watch, "SECONDS_MAX", 0.01)
    waits = iter((0.02, 0.0, 0.02, 0.02, 0.02))
    run = Watched(lambda _: time.sleep(next(waits)))
    run(b"")
    with pytest.raises(OverLimitError, match="for one input"):
        run(b"")


def test_memory_is_found_that_grows_behind_the_start(monkeypatch):
    monkeypatch.setattr(watch, "WARM_UP", 1)
    kept = []
    run = Watched(lambda data: kept.append(b"x" * len(data) * (1 << 20)))
    run(b"1" * 70)
    run(b"1")
    with pytest.raises(OverLimitError, match="MiB more than at the start"):
        for _ in range(4):
            run(b"1" * 30)


def test_an_exception_goes_on_to_libfuzzer():
    with pytest.raises(ZeroDivisionError):
        Watched(lambda data: 1 // len(data))(b"")
