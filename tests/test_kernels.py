"""Both sides of the kernels, and which one runs."""

import os
import shutil
import subprocess
import sys
from importlib.machinery import EXTENSION_SUFFIXES
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
        "print(row_stage.__file__.endswith('.py'), kernels.side())"
    )
    assert ask(code, IBB_INTERPRETED="1") == "True interpreted"


def test_the_version_says_which_side_runs():
    code = "from ibb.cli.main import ibb; ibb(['--version'], prog_name='ibb')"
    assert ask(code, IBB_INTERPRETED="1").endswith(" (interpreted)")
    assert ask(code, IBB_INTERPRETED="").endswith(f" ({kernels.side()})") or os.environ.get(
        "IBB_INTERPRETED"
    )


@pytest.fixture
def tree(tmp_path, monkeypatch):
    """Return a tree of sources with files beside them that have the marks of compiled ones."""
    left_out = shutil.ignore_patterns("*.so", "__pycache__", "static")
    shutil.copytree(ROOT / "ibb", tmp_path / "ibb", ignore=left_out)
    monkeypatch.setattr(kernels, "_ROOT", tmp_path)
    for name, mark in kernels.marks().items():
        compiled(tmp_path, name).write_text(f"... {mark} ...")
    return tmp_path


def compiled(tree, name):
    """Return the path of a kernel's compiled file."""
    path = tree.joinpath(*name.split("."))
    return path.with_name(path.name + EXTENSION_SUFFIXES[0])


def change(path):
    path.write_text(path.read_text() + "\n")


def test_kernels_that_were_compiled_from_other_sources_are_told(tree):
    one, other = kernels.KERNELS[0], kernels.KERNELS[-1]
    source = tree.joinpath(*one.split("."))
    assert kernels.unfit() == []
    compiled(tree, other).unlink()
    assert kernels.unfit() == [other]
    change(source.with_suffix(".py"))
    assert kernels.unfit() == [one, other]
    change(source.with_suffix(".pxd"))  # others may reach into it
    assert kernels.unfit() == list(kernels.KERNELS)
    for name in kernels.KERNELS:
        compiled(tree, name).unlink(missing_ok=True)
    assert kernels.unfit() == []  # none is compiled: nothing is wrong


@pytest.mark.parametrize("fault", ["missing", "outdated"])
def test_a_tree_of_which_a_part_is_compiled_runs_as_plain_python_and_says_so(tree, fault):
    name = "ibb.protocol.fast_checksum"
    if fault == "missing":
        compiled(tree, name).unlink()
    else:
        compiled(tree, name).write_text("of other sources")
    code = (
        "from ibb import kernels; from ibb.protocol import fast_checksum, group_run;"
        "print(fast_checksum.__file__[-3:], group_run.__file__[-3:], kernels.side())"
    )
    said = f"interpreted, as 1 of {len(kernels.KERNELS)} kernels are missing or outdated"
    for interpreted, side in (("", said), ("1", "interpreted")):
        done = subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "IBB_INTERPRETED": interpreted},
            cwd=tree,
            check=True,
            capture_output=True,
            text=True,
        )
        assert done.stdout == f".py .py {side}\n"
        warning = f"RuntimeWarning: ibb is {said}: it is many times slower; install it again"
        assert (warning in done.stderr) is not bool(interpreted)


@pytest.mark.parametrize("name", kernels.KERNELS)
def test_a_kernel_needs_nothing_of_cython_to_run(name):
    code = f"import sys; sys.modules['cython'] = None; import {name} as it; print(it.__file__)"
    assert ask(code, IBB_INTERPRETED="1").endswith(".py")
