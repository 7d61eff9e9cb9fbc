"""The commands of docs/containers.md, run on the stack as they stand there."""

import re

import pytest

from tests.docs.console import Console, steps
from tests.docs.covered_pages import IN_CONTAINERS, ROOT

HOST_FOLDERS = re.compile(r"(?<!\S)/backups(?=:)")  # the others are inside of containers
COMPOSE = f"""\
#!/usr/bin/env bash
exec {ROOT}/scripts/compose "$@"
"""


@pytest.fixture
def folder(stack, tmp_path):
    """A folder as the checkout's top, with nothing in it that could be changed."""
    (tmp_path / "scripts").mkdir()
    script = tmp_path / "scripts" / "compose"
    script.write_text(COMPOSE)
    script.chmod(0o755)
    backups = tmp_path / "backups"
    backups.mkdir()
    backups.chmod(0o777)
    yield tmp_path
    mount = ("-v", f"{backups}:/backups")  # what is there belongs to the image's user
    removal = ("-c", "rm -rf /backups/*")
    stack.engine("run", "--rm", "-u", "0", *mount, "--entrypoint", "sh", stack.image, *removal)


@pytest.mark.parametrize("page", IN_CONTAINERS)
def test_a_page_shows_what_happens(stack, folder, page):
    stack.sql("primary", "DROP DATABASE IF EXISTS shop")
    with Console(folder, folders=HOST_FOLDERS) as console:
        console.ports = {}  # they are in containers, too
        for step in steps((ROOT / page).read_text()):
            stack.wait_for_replicas()
            console.check(step)
