"""
The kernels: the few hot loops, which run as plain Python and, where there was a compiler, as C.

Each is an ordinary module with a `.pxd` beside it. Both sides do the same; the compiled one is
many times faster. With IBB_INTERPRETED set in the environment the sources run in any case.

Compiled kernels reach into one another by the types that they were compiled with, so all of them
run, or none. Each carries a mark of its source and of all types, put there by `setup.py`. Where one
is missing, or its mark is not that of the sources here, all run as plain Python, with a warning.
"""

from __future__ import annotations

import os
import sys
import warnings
from hashlib import sha256
from importlib.abc import MetaPathFinder
from importlib.machinery import EXTENSION_SUFFIXES
from importlib.util import spec_from_file_location
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

KERNELS: Final = (
    "ibb.protocol.compint",
    "ibb.protocol.fast_checksum",
    "ibb.protocol.group_run",
    "ibb.protocol.little_endian",
    "ibb.protocol.plain_events",
    "ibb.protocol.small_groups",
    "ibb.protocol.rows.moment_values",
    "ibb.protocol.rows.number_values",
    "ibb.protocol.rows.row_stage",
    "ibb.protocol.rows.string_values",
    "ibb.server.dump.encoder_state",
    "ibb.server.dump.event_packets",
    "ibb.server.dump.piece_shelf",
    "ibb.server.dump.run_encoder",
    "ibb.server.dump.sequence_ids",
    "ibb.server.dump.shared_pump",
    "ibb.server.dump.timed_poll",
    "ibb.server.thread_locks",
    "ibb.server.work_permits",
    "ibb.storage.commit_scan",
    "ibb.storage.fifo_page",
    "ibb.storage.file_beginning",
    "ibb.storage.group_copier",
    "ibb.storage.oob_forest",
    "ibb.storage.oob_run",
    "ibb.storage.os_read",
    "ibb.storage.page_ring",
    "ibb.storage.page_seal",
    "ibb.storage.record_run",
    "ibb.storage.record_walker",
    "ibb.storage.redo_scan",
    "ibb.storage.verify.event_lengths",
    "ibb.storage.verify.found_items",
    "ibb.storage.verify.open_lists",
    "ibb.storage.verify.record_head",
    "ibb.storage.verify.sound_run",
)

_ROOT: Final = Path(__file__).parent.parent
_MARK: Final = "ibb kernel of the sources "


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


_finder: Final = _SourceFinder()


def choose_side() -> None:
    """Have kernels that are imported from now on run as C if all can, else as plain Python."""
    if os.environ.get("IBB_INTERPRETED"):
        sys.meta_path.insert(0, _finder)
    elif unfit():
        sys.meta_path.insert(0, _finder)
        text = f"ibb is {side()}: it is many times slower; install it again, or run scripts/compile"
        warnings.warn(text, RuntimeWarning, stacklevel=3)


def side() -> str:
    """Return which side runs: "compiled", or "interpreted", and why if that was not asked for."""
    if _finder not in sys.meta_path:
        return "compiled" if compiled_files() else "interpreted"
    if os.environ.get("IBB_INTERPRETED") or not (odd := unfit()):
        return "interpreted"
    return f"interpreted, as {len(odd)} of {len(KERNELS)} kernels are missing or outdated"


def compiled_files() -> dict[str, Path]:
    """Return the compiled file of each kernel that has one."""
    found = {}
    for name in KERNELS:
        stem = _stem(name)
        for suffix in EXTENSION_SUFFIXES:  # as an import looks for it
            file = stem.with_name(stem.name + suffix)
            if file.exists():
                found[name] = file
                break
    return found


def unfit() -> list[str]:
    """Return the kernels that are not compiled from the sources here, if any is compiled at all."""
    files = compiled_files()
    if not files:
        return []
    return [
        name
        for name, mark in marks().items()
        if name not in files or mark.encode() not in files[name].read_bytes()
    ]


def marks() -> dict[str, str]:
    """Return what each kernel carries if it was compiled from the sources here."""
    types = sha256()
    for name in KERNELS:
        types.update(_stem(name).with_suffix(".pxd").read_bytes())
    found = {}
    for name in KERNELS:
        whole = types.copy()
        whole.update(_stem(name).with_suffix(".py").read_bytes())
        found[name] = _MARK + whole.hexdigest()
    return found


def _stem(name: str) -> Path:
    return _ROOT.joinpath(*name.split("."))
