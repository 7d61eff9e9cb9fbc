"""Directories that another program wrote, served as they lie, give their exact bytes."""

import random

import pytest

from ibb.demo.dump_client import DumpClient
from ibb.protocol.errors import SqlError

from ..sample_directories import NAMES, expected_of, unpack
from .mariadb_server import PASSWORD, USER

pytestmark = pytest.mark.live

STARTS = 50  # places to start from, of each sample
CLIENT_ID = 900


def position_after(groups, state, index):
    """
    Return the GTID position behind `groups[index]`, or None where it cannot be told.

    Domains whose groups are all purged stand in the final *state* alone.
    """
    newest = {gtid.split("-")[0]: gtid for gtid in state}
    later = {group["gtid"].split("-")[0] for group in groups[index + 1 :]}
    known = {group["gtid"].split("-")[0]: group["gtid"] for group in groups[: index + 1]}
    purged = newest.keys() - known.keys() - later
    if later - known.keys() and groups[0]["file"] > 0:
        return None
    return ",".join([*known.values(), *(newest[domain] for domain in purged)])


def received(port, start):
    with DumpClient(port, USER, PASSWORD) as client:
        groups = client.groups(start, server_id=CLIENT_ID, wait=False)
        return [(str(group.gtid), group.size, group.sha256) for group in groups]


@pytest.mark.parametrize("name", NAMES)
def test_a_sample_is_served_from_any_position(rig, tmp_path, name):
    unpack(name, tmp_path)
    expected = expected_of(name)
    groups = expected["groups"]
    wanted = [(group["gtid"], group["bytes"], group["sha256"]) for group in groups]
    ibb = rig.ibb("--read-only", directory=tmp_path).start()

    if groups[0]["file"] == 0:
        assert received(ibb.port, "") == wanted
    else:
        with pytest.raises(SqlError, match="Could not find GTID state requested by slave"):
            received(ibb.port, "")
    seed = random.Random(name)
    for index in seed.sample(range(len(groups)), STARTS):
        position = position_after(groups, expected["state"], index)
        if position is not None:
            assert received(ibb.port, position) == wanted[index + 1 :], position
    assert ibb.stop() == 0
