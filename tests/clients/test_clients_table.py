"""The tables in docs/clients.md say what the tests use."""

import re
import subprocess
from importlib.metadata import version
from pathlib import Path

import pytest

from ibb.demo.installation import Installation

from .drivers import DRIVERS

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/clients.md").read_text()
PROGRAMS = (
    "mariadb",
    "mariadb-admin",
    "mariadb-show",
    "mariadb-binlog",
    "mariadb-dump",
    "mariadbd",
)


def rows():
    """Return the cells of each line of a table, by its first one."""
    lines = [line.strip("| ") for line in PAGE.splitlines() if line.startswith("| ")]
    return {cells[0]: cells[1:] for cells in (re.split(r"\s*\|\s*", line) for line in lines)}


def yes(value):
    return "yes" if value else "no"


@pytest.mark.parametrize("name", DRIVERS)
def test_a_driver_is_described_as_it_was_tried(name):
    driver = DRIVERS[name]
    assert rows()[name] == [
        driver.distribution,
        version(driver.distribution),
        ", ".join(driver.methods),
        yes(driver.tls_by_itself),
        yes(driver.prepares),
    ]


def test_a_reader_of_rows_has_the_version_that_was_tried():
    modules = (ROOT / "tests/clients/go_reader/go.mod").read_text()
    (built,) = re.findall(r"go-mysql-org/go-mysql v(\S+)", modules)
    assert rows()["mysql-replication"][0] == version("mysql-replication")
    assert rows()["go-mysql"][0] == built


@pytest.mark.live
def test_the_programs_have_the_versions_that_were_tried(mariadb_10, mariadb_11):
    found = ", ".join(series(installation) for installation in (mariadb_10, mariadb_11))
    assert {program: rows()[program][0] for program in PROGRAMS} == dict.fromkeys(PROGRAMS, found)


def series(installation: Installation):
    """Return what release series an installation is of."""
    done = subprocess.run(
        installation.command("mariadbd", "--version"), capture_output=True, text=True, check=True
    )
    return re.findall(r"(\d+\.\d+)\.\d+-MariaDB", done.stdout)[0]


def test_every_tried_program_is_in_the_table():
    tried = {*DRIVERS, *PROGRAMS, "mysql-replication", "go-mysql"}
    headers = {"driver", "program", "reader"}
    assert rows().keys() == tried | headers
