"""A relay steered by SQL: stopped, pointed elsewhere, started again, with nothing lost."""

import pytest

from ibb.demo.serve_process import run_ibb
from ibb.protocol.gtid import GtidPosition

from .mariadb_server import PASSWORD, USER
from .statements.statement_client import Refused, StatementClient
from .waiting import wait_until

pytestmark = [pytest.mark.live]

SECONDS = 60
DBA, SECRET = "dba", "open sesame"
NOBODYS_PORT = 1


class Relay:
    """A primary, its relay, and an administrator's connection to that."""

    def __init__(self, rig, installation):
        self.primary = rig.primary(installation)
        self.ibb = rig.ibb().relay_from(self.primary.port)
        added = run_ibb(
            *("account", "add", "--file", str(self.ibb.folder / "accounts.toml")),
            *("--grant", "ALL PRIVILEGES", "--password-stdin", DBA),
            stdin=SECRET,
        )
        assert added.returncode == 0, added.stderr
        self.ibb.start()
        self.client = StatementClient(self.ibb.port, DBA, SECRET)

    def ask(self, sql):
        (answer,) = self.client.query(sql)
        return answer

    def status(self):
        """Return SHOW REPLICA STATUS by column, empty without an upstream."""
        answer = self.ask("SHOW REPLICA STATUS")
        names = [column.name for column in answer.columns]
        return {
            name: value if value is None else value.decode()
            for row in answer.rows
            for name, value in zip(names, row, strict=True)
        }

    def has_all(self):
        wanted = GtidPosition.parse(self.primary.binlog_position())
        (row,) = self.ask("SELECT @@gtid_binlog_pos").rows
        return GtidPosition.parse(row[0].decode()) == wanted

    def write(self, number):
        self.primary.run(f"CREATE DATABASE d{number}")


@pytest.fixture(scope="module")
def relay(rig, mariadb_10):
    relay = Relay(rig, mariadb_10)
    yield relay
    relay.client.close()


def running(status):
    return status["Slave_IO_Running"], status["Slave_SQL_Running"]


def test_a_relay_that_runs_says_so(relay):
    relay.write(1)
    wait_until(relay.has_all, SECONDS)
    status = relay.status()
    assert running(status) == ("Yes", "Yes")
    assert (status["Master_Host"], status["Master_User"]) == ("127.0.0.1", USER)
    assert status["Master_Port"] == str(relay.primary.port)
    assert status["Master_Server_Id"] == str(relay.primary.value("@@server_id"))
    assert status["Gtid_IO_Pos"] == relay.primary.binlog_position()
    assert status["Last_IO_Errno"] == "0"
    wait_until(lambda: relay.status()["Seconds_Behind_Master"] == "0", SECONDS)
    assert relay.ask("CHANGE MASTER TO MASTER_PORT=1").code == 1198
    assert relay.ask("RESET SLAVE").code == 1198
    assert relay.ask("START SLAVE").warnings == 1
    users = [row[1] for row in relay.ask("SHOW PROCESSLIST").rows]
    assert b"system user" in users


def test_it_stops_and_goes_on_where_it_was(relay):
    assert not isinstance(relay.ask("STOP SLAVE"), Refused)
    before = relay.ask("SELECT @@gtid_binlog_pos").rows
    relay.write(2)
    status = relay.status()
    assert running(status) == ("No", "No")
    assert status["Seconds_Behind_Master"] is None
    assert relay.ask("STOP SLAVE").warnings == 1
    assert relay.ask("SELECT @@gtid_binlog_pos").rows == before
    assert not isinstance(relay.ask("START SLAVE"), Refused)
    wait_until(relay.has_all, SECONDS)


def test_it_tells_of_an_upstream_that_is_not_there_and_takes_another(relay):
    relay.ask("STOP SLAVE")
    relay.ask(f"CHANGE MASTER TO MASTER_PORT={NOBODYS_PORT}, MASTER_CONNECT_RETRY=1")
    relay.ask("START SLAVE")
    wait_until(lambda: relay.status()["Last_IO_Errno"] == "2003", SECONDS)
    status = relay.status()
    assert running(status) == ("Connecting", "Yes")
    assert f"'{USER}@127.0.0.1:{NOBODYS_PORT}' - retry-time: 1 " in status["Last_IO_Error"]
    assert PASSWORD not in str(status)
    relay.write(3)
    relay.ask("STOP SLAVE")
    relay.ask(f"CHANGE MASTER TO MASTER_PORT={relay.primary.port}")
    relay.ask("START SLAVE")
    wait_until(relay.has_all, SECONDS)
    assert relay.status()["Last_IO_Errno"] == "0"


def test_it_can_forget_its_upstream_and_be_given_it_again(relay):
    relay.ask("STOP ALL SLAVES")
    relay.ask("RESET SLAVE ALL")
    assert relay.status() == {}
    assert relay.ask("START SLAVE").code == 1200
    relay.write(4)
    relay.ask(
        f"CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT={relay.primary.port}, "
        f"MASTER_USER='{USER}', MASTER_PASSWORD='{PASSWORD}', MASTER_USE_GTID=slave_pos"
    )
    relay.ask("START ALL SLAVES")
    wait_until(relay.has_all, SECONDS)
    assert PASSWORD not in relay.ibb.log.read_text()
