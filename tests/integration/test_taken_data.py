"""The data of a real server: no store is made beside it, nor its binlog taken while it runs."""

from collections.abc import Iterator

import pytest

from ibb.demo.installation import Installation
from ibb.server.config import ConfigError
from ibb.server.store_place import check_store
from ibb.storage.os_disk import OsDisk

from .conftest import new_rig
from .mariadb_server import MariadbServer

pytestmark = pytest.mark.live


@pytest.fixture(params=["mariadb_10", "mariadb_11"])
def server(request: pytest.FixtureRequest) -> Iterator[MariadbServer]:
    installation: Installation = request.getfixturevalue(request.param)
    with new_rig() as rig:
        yield rig.primary(installation)


def test_a_servers_data_is_known_and_so_is_that_it_runs(server: MariadbServer) -> None:
    """It holds its locks from its start to its end, on what lies beside a binlog or above it."""
    disk, inside = OsDisk(), server.data / "binlogs"
    with pytest.raises(ConfigError, match=r"the data of a database server .*ibdata1"):
        check_store(disk, str(server.data))
    inside.mkdir()
    for place in (server.data, inside):
        (place / "binlog-000000.ibb").write_bytes(b"")
        with pytest.raises(ConfigError, match=r"a MariaDB server is running on .* --read-only"):
            check_store(disk, str(place))
    server.stop()
    for place in (server.data, inside):
        check_store(disk, str(place))
