"""Many threads at once: the windows of what they share are widened, so that they meet."""

from pathlib import Path

from .stress import is_in, stress


def test_no_promise_is_broken(tmp_path: Path) -> None:
    is_added, is_written = is_in("durable.py add"), is_in("redo.py _write")
    assert stress(tmp_path, seed=1, watched=lambda code: is_added(code) or is_written(code)) > 0
