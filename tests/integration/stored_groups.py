"""What `ibb groups` says is stored."""

import json
from pathlib import Path
from typing import Any

from ibb.demo.serve_process import run_ibb


def stored_groups(directory: Path) -> list[dict[str, Any]]:
    """Return the groups of an `.ibb` directory, oldest first, as `ibb groups --json` tells them."""
    done = run_ibb("groups", str(directory), "--json")
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]
