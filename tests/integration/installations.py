"""The two versions of MariaDB that tests run, where scripts/setup has put them."""

from os import environ
from pathlib import Path

from ibb.demo.installation import Installation

CACHE = Path(environ.get("IBB_CACHE", "/var/cache/ibb"))


def mariadb_10_11() -> Installation:
    """Return 10.11: what this machine has installed, else unpacked beside it."""
    unpacked = CACHE / "mariadb-10.11"
    if (unpacked / ".ready").exists():
        return Installation.inside(unpacked)
    installed = Installation.find()
    assert installed is not None, "no mariadbd on this machine: run scripts/setup"
    return installed


def mariadb_11_8() -> Installation:
    """Return 11.8, which is unpacked on every machine."""
    return Installation.inside(CACHE / "mariadb-11.8")
