"""The corpus: one text file a target, one Python bytes literal a line."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from pathlib import Path

FOLDER = Path(__file__).parent / "corpus"
INPUT_BYTES_MAX = 1024


def read(target: str) -> list[bytes]:
    """Return the inputs kept for *target*."""
    path = FOLDER / f"{target}.txt"
    if not path.exists():
        return []
    return [ast.literal_eval(line) for line in path.read_text().splitlines()]


def write(target: str, inputs: Iterable[bytes]) -> None:
    """Keep *inputs* for *target* in place of what was kept, short ones first."""
    lines = [repr(data) for data in sorted(set(inputs), key=lambda data: (len(data), data))]
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / f"{target}.txt").write_text("".join(f"{line}\n" for line in lines))


def unpack(target: str, folder: Path) -> None:
    """Write the inputs kept for *target* as files, as libFuzzer wants them."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, data in enumerate(read(target)):
        (folder / str(number)).write_bytes(data)
