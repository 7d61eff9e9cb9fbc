"""The two servers that the statements are run against, started once."""

from collections.abc import Iterator

import pytest

from ibb.demo.installation import Installation

from ..conftest import new_rig
from .twins import Twins, start_twins


@pytest.fixture(scope="session")
def twins(mariadb_10: Installation) -> Iterator[Twins]:
    """Both with the same history; tests that use them share the xdist_group `twins`."""
    with new_rig() as rig:
        yield start_twins(rig, mariadb_10)
