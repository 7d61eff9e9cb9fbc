"""
The kernels: the few hot loops, which run as plain Python and, where there was a compiler, as C.

Each is an ordinary module with a `.pxd` beside it. Both sides do the same; the compiled one is
many times faster. With IBB_INTERPRETED set in the environment the sources run in any case.
"""

from __future__ import annotations

import sys
from importlib.abc import MetaPathFinder
from importlib.util import find_spec, spec_from_file_location
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

KERNELS: Final = (
    "ibb.protocol.fast_checksum",
    "ibb.protocol.group_run",
    "ibb.protocol.rows.moment_values",
    "ibb.protocol.rows.number_values",
    "ibb.protocol.rows.row_stage",
    "ibb.protocol.rows.string_values",
    "ibb.server.dump.run_encoder",
    "ibb.storage.record_run",
    "ibb.storage.record_walker",
)


class _SourceFinder(MetaPathFinder):
    """Finds the Python source of a kernel where its compiled side lies beside it."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        del target
        if fullname not in KERNELS or not path:
            return None
        name = fullname.rpartition(".")[2]
        return spec_from_file_location(fullname, Path(path[0]) / f"{name}.py")


def interpret() -> None:
    """Have every kernel that is imported from now on run as plain Python."""
    sys.meta_path.insert(0, _SourceFinder())


def compiled_files() -> dict[str, Path]:
    """Return the compiled file of each kernel that has one and would run it."""
    origins = {name: find_spec(name) for name in KERNELS}
    paths = {name: Path(spec.origin) for name, spec in origins.items() if spec and spec.origin}
    return {name: path for name, path in paths.items() if path.suffix != ".py"}


def side() -> str:
    """Return which side runs: "compiled", "interpreted", or how many of them are compiled."""
    count = len(compiled_files())
    if 0 < count < len(KERNELS):
        return f"{count} of {len(KERNELS)} kernels compiled"
    return "compiled" if count else "interpreted"


def outdated() -> list[str]:
    """Return the kernels whose compiled file is older than its source, in a tree of sources."""
    found = []
    for name, path in compiled_files().items():
        stem = path.parent / name.rpartition(".")[2]
        sources = [stem.with_suffix(suffix) for suffix in (".py", ".pxd")]
        if any(source.stat().st_mtime > path.stat().st_mtime for source in sources):
            found.append(name)
    return found
