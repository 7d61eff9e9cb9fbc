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
