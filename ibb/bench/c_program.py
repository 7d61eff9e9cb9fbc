"""The suite's programs in C: compiled when first needed, kept in the user's cache."""

from __future__ import annotations

import functools
import hashlib
import os
import shutil
import subprocess
import tempfile
from importlib import resources
from pathlib import Path

from .errors import BenchError

COMPILE_SECONDS_MAX = 120.0
_FLAGS = ("-O2", "-std=gnu11")


def compiler() -> str | None:
    """Return the path of a C compiler, None where there is none; `CC` names another."""
    return shutil.which(os.environ.get("CC", "gcc")) or shutil.which("cc")


@functools.cache
def compiled(name: str) -> Path | None:
    """
    Return the program made of the package's source `NAME.c`; None: no compiler is installed.

    The cache is keyed by source, compiler and flags, so that a change of any makes a new one.

    Raises:
        BenchError: the compiler fails, or takes longer than `COMPILE_SECONDS_MAX`.
    """
    program = compiler()
    if program is None:
        return None
    source = resources.files(__package__).joinpath(f"{name}.c").read_bytes()
    version = subprocess.run([program, "--version"], capture_output=True, check=False).stdout
    key = hashlib.sha256(b"\0".join((source, version, " ".join(_FLAGS).encode()))).hexdigest()
    target = _cache() / f"{name}-{key[:16]}"
    if not target.exists():
        _compile(program, source, target)
    return target


def _cache() -> Path:
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = Path(home) / "ibb" / "bench"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _compile(program: str, source: bytes, target: Path) -> None:
    # Under another name first: two suites that start together must not run half a program.
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        made = Path(folder) / target.name
        done = subprocess.run(
            [program, *_FLAGS, "-x", "c", "-", "-o", str(made)],
            input=source,
            capture_output=True,
            timeout=COMPILE_SECONDS_MAX,
            check=False,
        )
        if done.returncode != 0:
            said = done.stderr.decode(errors="replace").strip()
            raise BenchError(f"{program} cannot compile {target.name}: {said}")
        made.replace(target)
