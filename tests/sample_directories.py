"""The sample directories of tests/data/ibb, unpacked, and what a reader must find in them."""

import json
import lzma
import tarfile
from pathlib import Path
from typing import Any

SAMPLES = Path(__file__).parent / "data" / "ibb"
NAMES = sorted(path.name.removesuffix(".tar.xz") for path in SAMPLES.glob("*.tar.xz"))


def unpack(name: str, folder: Path) -> None:
    """Put the files of the sample *name* into *folder*."""
    with tarfile.open(SAMPLES / f"{name}.tar.xz") as archive:
        # The first releases of Python 3.11 know no filter, Debian 12's among them.
        archive.extraction_filter = getattr(tarfile, "data_filter", lambda member, _path: member)
        archive.extractall(folder)


def expected_of(name: str) -> dict[str, Any]:
    """Return what was noted when the sample *name* was made."""
    plain, packed = (SAMPLES / f"{name}.expected.json{end}" for end in ("", ".xz"))
    text = lzma.decompress(packed.read_bytes()) if packed.exists() else plain.read_bytes()
    found: dict[str, Any] = json.loads(text)
    return found
