"""Real semi-synchronous replicas: what a commit waited for is theirs, whenever they are killed."""

import random
import threading

import pytest

from .publisher import SERVER_ID, publishing
from .relay_logs import received_gtids
from .waiting import wait_until

pytestmark = [
    pytest.mark.live,
    pytest.mark.slow,
    pytest.mark.xdist_group("semi sync"),
    pytest.mark.timeout(300),
]

SECONDS = 60.0
COMMITS = 1000
KILLS = 5
LONG_MS = 1_000_000
OPTIONS = (
    "--rpl-semi-sync-slave-enabled=1",
    "--innodb-flush-log-at-trx-commit=2",  # what the replica has applied survives its end
    "--skip-slave-start",
)


class Committing:
    """A thread that commits *count* rows, one after the other; `done` have returned."""

    def __init__(self, publisher, count):
        self.done = 0
        self._publisher = publisher
        self._count = count
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self):
        for number in range(self._count):
            self._publisher.change(f"INSERT INTO d.t VALUES ({number})")
            self.done += 1

    def join(self):
        self._thread.join(SECONDS)
        assert not self._thread.is_alive(), self.done


def sequence_numbers(gtids):
    return {int(gtid.rpartition("-")[2]) for gtid in gtids}


@pytest.mark.parametrize("seed", [1])
@pytest.mark.parametrize("version", ["10.11", "11.8"])
def test_every_acknowledged_commit_is_the_replicas(
    rig, mariadb_10, mariadb_11, tmp_path, version, seed
):
    chance = random.Random(seed)
    replica = rig.replica(mariadb_10 if version == "10.11" else mariadb_11, *OPTIONS)
    with publishing(
        tmp_path / "store", rpl_semi_sync_master_enabled=True, rpl_semi_sync_master_timeout=LONG_MS
    ) as publisher:
        replica.replicate_from(publisher.port)
        publisher.define("CREATE DATABASE d")
        publisher.define("CREATE TABLE d.t (id INT PRIMARY KEY)")
        definitions = publisher.newest
        commits = Committing(publisher, COMMITS)
        for _ in range(KILLS):
            wanted = commits.done + chance.randrange(1, COMMITS // KILLS)
            wait_until(lambda wanted=wanted: commits.done >= wanted, SECONDS, commits.done)
            replica.kill()
            received = sequence_numbers(received_gtids(replica.data))
            replica.start()
            applied = sequence_numbers(replica.replica_position().split(","))
            returned = commits.done + definitions  # no replica is there: nothing returns any more
            assert returned < COMMITS + definitions
            has = received | set(range(1, max(applied) + 1))
            assert set(range(1, returned + 1)) <= has
            replica.run("START SLAVE")
        commits.join()
        position = f"0-{SERVER_ID}-{publisher.newest}"
        wait_until(lambda: replica.replica_position() == position, SECONDS, replica.replica_status)
        assert replica.rows("SELECT COUNT(*) FROM d.t") == [(COMMITS,)]
        status = publisher.server.status()
        assert status["Rpl_semi_sync_master_yes_tx"] == str(COMMITS + definitions)
        assert status["Rpl_semi_sync_master_no_tx"] == "0"
        assert status["Rpl_semi_sync_master_status"] == "ON"


@pytest.mark.parametrize("version", ["10.11", "11.8"])
def test_a_replica_that_stops_makes_commits_asynchronous_until_it_is_back(
    rig, mariadb_10, mariadb_11, tmp_path, version
):
    replica = rig.replica(mariadb_10 if version == "10.11" else mariadb_11, *OPTIONS)
    with publishing(
        tmp_path / "store", rpl_semi_sync_master_enabled=True, rpl_semi_sync_master_timeout=500
    ) as publisher:

        def shown(name):
            return publisher.server.status()[f"Rpl_semi_sync_master_{name}"]

        replica.replicate_from(publisher.port)
        wait_until(lambda: shown("clients") == "1", SECONDS)
        publisher.define("CREATE DATABASE d")
        publisher.define("CREATE TABLE d.t (id INT PRIMARY KEY)")
        assert [shown("yes_tx"), shown("status")] == ["2", "ON"]
        assert replica.rows("SHOW STATUS LIKE 'Rpl_semi_sync_slave_status'")[0][1] == "ON"
        replica.run("STOP SLAVE")
        wait_until(lambda: shown("clients") == "0", SECONDS)
        for number in range(20):
            publisher.change(f"INSERT INTO d.t VALUES ({number})")
        assert [shown("no_tx"), shown("no_times"), shown("status")] == ["20", "1", "OFF"]
        replica.run("START SLAVE")
        wait_until(lambda: shown("status") == "ON", SECONDS, publisher.server.status)
        publisher.change("INSERT INTO d.t VALUES (100)")
        assert shown("yes_tx") == "3"
