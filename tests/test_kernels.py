"""Both sides of the kernels, and which one runs."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ibb import kernels

ROOT = Path(__file__).parent.parent


def ask(code, **environment):
    """Return what *code* prints in a process of its own."""
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **environment},
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.strip()


def test_the_list_of_kernels_is_that_of_their_types():
    found = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for path in (ROOT / "ibb").rglob("*.pxd")
    }
    assert found == set(kernels.KERNELS)


def test_the_environment_has_sources_run():
    code = (
        "from ibb import kernels; from ibb.protocol.rows import row_stage;"
        "print(row_stage.__file__.endswith('.py'), kernels.side(), kernels.outdated())"
    )
    assert ask(code, IBB_INTERPRETED="1") == "True interpreted []"


def test_the_version_says_which_side_runs():
    code = "from ibb.cli.main import ibb; ibb(['--version'], prog_name='ibb')"
    assert ask(code, IBB_INTERPRETED="1").endswith(" (interpreted)")
    assert ask(code, IBB_INTERPRETED="").endswith(f" ({kernels.side()})") or os.environ.get(
        "IBB_INTERPRETED"
    )


def test_a_compiled_file_that_is_older_than_its_source_is_told(tmp_path, monkeypatch):
    source = tmp_path / "row_stage.py"
    built = tmp_path / "row_stage.cpython-311.so"
    for path in (source, source.with_suffix(".pxd"), built):
        path.touch()
    monkeypatch.setattr(kernels, "compiled_files", lambda: {"ibb.protocol.rows.row_stage": built})
    os.utime(built, (2, 2))
    os.utime(source, (1, 1))
    os.utime(source.with_suffix(".pxd"), (1, 1))
    assert kernels.outdated() == []
    os.utime(source.with_suffix(".pxd"), (3, 3))
    assert kernels.outdated() == ["ibb.protocol.rows.row_stage"]


@pytest.mark.parametrize("name", kernels.KERNELS)
def test_a_kernel_needs_nothing_of_cython_to_run(name):
    code = f"import sys; sys.modules['cython'] = None; import {name} as it; print(it.__file__)"
    assert ask(code, IBB_INTERPRETED="1").endswith(".py")
