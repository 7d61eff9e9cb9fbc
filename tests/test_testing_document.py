"""docs/testing.md names tests that are there."""

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
DOCUMENT = (ROOT / "docs" / "testing.md").read_text()


def test_every_test_that_is_named_is_there():
    named = set(re.findall(r"`((?:tests/[a-z_/]*)?test_[a-z_0-9]+\.py)`", DOCUMENT))
    assert len(named) > 20
    there = {str(path.relative_to(ROOT)) for path in ROOT.glob("tests/**/test_*.py")}
    there |= {Path(path).name for path in there}
    assert named - there == set()


def test_every_damage_that_is_named_is_done():
    section = DOCUMENT.split("\n## Damage\n")[1].split("\n## ")[0]
    named = set(re.findall(r"`([a-z0-9_]{6,})`", section))
    assert len(named) > 40
    folder = ROOT / "tests" / "storage" / "verify"
    code = "".join(
        path.read_text()
        for pattern in ("*_damages.py", "test_damage_by_shape.py")
        for path in folder.glob(pattern)
    )
    assert named - set(re.findall(r"^def (\w+)\(", code, re.MULTILINE)) == set()
