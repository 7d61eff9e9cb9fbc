"""What CHANGE MASTER takes: MariaDB's errors and warnings, and nothing that a relay cannot do."""

import pytest

from ibb.protocol.errors import SqlError
from ibb.server.config import ConfigError
from ibb.server.login.accounts import AccountBook, make_account
from ibb.server.relay.relay_control import RelayControl
from ibb.server.relay.upstream import UpstreamAddress, is_host_name
from ibb.server.relay.upstream_tls import UpstreamTls

from ..raw_client import RawClient


@pytest.fixture
def accounts():
    return AccountBook([make_account("repl", "%", "secret", ["ALL PRIVILEGES"])])


@pytest.fixture
async def relay(serve, store):
    server = await serve(store)
    server.upstream = RelayControl(store, server, None, UpstreamTls())
    yield server
    await server.upstream.stop()


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ("MASTER_HOST = ''", 1210),
        (f"MASTER_HOST = '{'a' * 300}'", 1210),
        ("MASTER_PORT = 99999", 1210),
        ("MASTER_PORT = 0", 1210),
        ("MASTER_HEARTBEAT_PERIOD = 'a'", 1064),
        ("MASTER_HEARTBEAT_PERIOD = 99999999999", 1624),
        ("MASTER_HEARTBEAT_PERIOD = 0", 1235),
        ("MASTER_HEARTBEAT_PERIOD = 0.0001", 1235),
        ("MASTER_USE_GTID = slave_pos, MASTER_USE_GTID = slave_pos", 1225),
        ("MASTER_USE_GTID = no", 1235),
    ],
)
async def test_what_is_wrong_is_refused_and_changes_nothing(relay, options, code):
    before = relay.config
    async with await RawClient.logged_in(relay) as client:
        await client.query("CHANGE MASTER TO MASTER_HOST = 'here', MASTER_PORT = 33")
        with pytest.raises(SqlError) as caught:
            await client.query(f"CHANGE MASTER TO MASTER_CONNECT_RETRY = 7, {options}")
        assert caught.value.code == code
        status = relay.replica_status()
        assert (status["Master_Host"], status["Master_Port"]) == ("here", 33)
    assert relay.config == before


@pytest.mark.parametrize(
    ("options", "warning", "retry", "period"),
    [
        ("MASTER_CONNECT_RETRY = 0", 1292, 1, 10),
        ("MASTER_CONNECT_RETRY = 99999999999", 1292, 31_536_000, 10),
        ("MASTER_HEARTBEAT_PERIOD = 1000", 1704, 60, 15),
        ("MASTER_HEARTBEAT_PERIOD = 30", 1704, 60, 15),
        ("MASTER_HEARTBEAT_PERIOD = 3, MASTER_HEARTBEAT_PERIOD = 2", None, 60, 2),
    ],
)
async def test_what_is_out_of_bounds_is_cut_with_a_warning(relay, options, warning, retry, period):
    async with await RawClient.logged_in(relay) as client:
        done = await client.query(f"CHANGE MASTER TO {options}")
        shown = await client.rows("SHOW WARNINGS")
        assert [int(row[1]) for row in shown] == ([] if warning is None else [warning])
        assert done.warnings == len(shown)
    assert relay.config.master_connect_retry == retry
    assert relay.config.master_heartbeat_period == period


@pytest.mark.parametrize("host", ["a" * 300, "a..b", ""])
def test_a_host_that_nobody_can_be_asked_for_is_no_upstream(host):
    assert not is_host_name(host)
    with pytest.raises(ConfigError, match="mariadb://USER@HOST:PORT"):
        UpstreamAddress.parse(f"mariadb://repl@{host}:3306", "secret")


@pytest.mark.parametrize("host", ["::1", "192.0.2.7", "primary.example.org", "bücher.example"])
def test_a_host_is_a_name_or_an_address(host):
    assert is_host_name(host)
