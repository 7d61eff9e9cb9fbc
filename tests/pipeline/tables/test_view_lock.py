"""A view begins at one position, and holds nobody up for long, at a real server."""

import threading
from contextlib import closing, contextmanager

import pymysql
import pytest

from ibb.pipeline.tables import view_lock
from ibb.pipeline.tables.config import ServerConfig
from ibb.pipeline.tables.errors import PipelineError
from ibb.pipeline.tables.snapshot_view import view_of_tables
from ibb.pipeline.tables.view_lock import held_still

from ...integration.conftest import mariadb_10, new_rig
from ...integration.waiting import wait_until
from .topology import ROW_OPTIONS

__all__ = ["mariadb_10"]
pytestmark = [pytest.mark.live, pytest.mark.xdist_group("mariadb_source")]

WRITERS = 4
VIEWS = 30


@pytest.fixture(scope="module")
def primary(mariadb_10):
    with new_rig() as rig:
        server = rig.primary(mariadb_10, *ROW_OPTIONS)
        server.run(
            "CREATE DATABASE shop",
            "CREATE TABLE shop.t (a INT PRIMARY KEY, b INT)",
            "CREATE TABLE shop.u (a INT AUTO_INCREMENT PRIMARY KEY)",
            "CREATE TABLE shop.m (a INT PRIMARY KEY, b INT) ENGINE=MyISAM",
            "INSERT INTO shop.t VALUES (1, 1)",
            "INSERT INTO shop.m VALUES (1, 1)",
        )
        yield server


def connected(primary):
    return pymysql.connect(unix_socket=str(primary.socket), user="root", autocommit=True)


def asked(connection, sql):
    with connection.cursor() as cursor:
        cursor.execute(sql)
        return cursor.fetchall()


@contextmanager
def busy(primary, table):
    """Have an UPDATE of *table* run that does not end by itself; yields what ends it."""
    with closing(connected(primary)) as one, closing(connected(primary)) as other:

        def update():
            with pytest.raises(pymysql.Error):  # it is killed
                asked(one, f"UPDATE shop.{table} SET b = SLEEP(3600)")

        thread = threading.Thread(target=update)
        thread.start()

        def end():
            asked(other, f"KILL QUERY {one.thread_id()}")
            thread.join()

        try:
            state = "SELECT STATE FROM information_schema.PROCESSLIST WHERE ID = "
            sleeps = (("User sleep",),)
            wait_until(lambda: asked(other, f"{state}{one.thread_id()}") == sleeps, 60)
            yield end
        finally:
            if thread.is_alive():
                end()


@contextmanager
def view_of_nothing(server):
    """Lend a view by two connections, for none of the tables."""
    config = ServerConfig(socket=str(server.socket), workers=2)
    with view_of_tables(config, lambda _: False, goes_on=False) as (view, tables):
        assert tables == []
        yield view


def test_a_long_update_is_not_waited_for(primary):
    with (
        busy(primary, "t"),
        view_of_nothing(primary) as view,
    ):
        assert str(view.place.position) == primary.binlog_position()
        for connection in view.connections:
            assert asked(connection, "SELECT b FROM shop.t") == ((1,),)
        primary.run("INSERT INTO shop.u VALUES ()")  # nobody waits


@pytest.mark.parametrize("has_stages", [True, False])
def test_who_would_wait_lets_others_go_first(primary, monkeypatch, caplog, has_stages):
    """A server without BACKUP STAGE says of it what this one says of what is no stage."""
    if not has_stages:
        monkeypatch.setattr(view_lock, "_STAGES", ("'NOTHING'",))
    with busy(primary, "m") as end, closing(connected(primary)) as connection:

        def pause(_):
            primary.run("INSERT INTO shop.u VALUES ()")
            pauses.append(1)
            end()

        pauses = []
        with held_still(connection, pause):
            position = primary.binlog_position()
        assert pauses == [1]
        assert "in vain. Thread " in caplog.text
        assert "SLEEP" not in caplog.text
        assert position.startswith("0-")
    primary.run("INSERT INTO shop.u VALUES ()")  # the lock is gone
    with closing(connected(primary)) as connection:
        with held_still(connection):
            pass
        ((default,),) = asked(connection, "SELECT @@GLOBAL.lock_wait_timeout")
        assert asked(connection, "SELECT @@lock_wait_timeout") == ((default,),)


def test_who_is_always_in_the_way_is_named(primary, monkeypatch):
    monkeypatch.setattr(view_lock, "ATTEMPTS_MAX", 2)
    pauses = []
    with (
        busy(primary, "m"),
        closing(connected(primary)) as connection,
        pytest.raises(PipelineError, match=r"at 2 attempts\. Thread \d+ of root@localhost"),
        held_still(connection, pauses.append),
    ):
        pytest.fail("it has the lock")
    assert pauses == [view_lock.PAUSE_SECONDS]
    primary.run("INSERT INTO shop.m VALUES (9, 9)")


@pytest.mark.parametrize("has_stages", [True, False])
def test_rows_are_those_of_the_position_whoever_writes(primary, monkeypatch, has_stages):
    """Each group is a row, so that numbers tell how many there must be."""
    if not has_stages:
        monkeypatch.setattr(view_lock, "_STAGES", ("'NOTHING'",))
    primary.run("TRUNCATE shop.u")
    first = int(primary.binlog_position().split("-")[2])
    stop = threading.Event()

    def write():
        with closing(connected(primary)) as connection:
            while not stop.is_set():
                asked(connection, "INSERT INTO shop.u VALUES ()")

    threads = [threading.Thread(target=write) for _ in range(WRITERS)]
    for thread in threads:
        thread.start()
    try:
        seen = set()
        for _ in range(VIEWS):
            with view_of_nothing(primary) as view:
                (last,) = view.place.position
                for connection in view.connections:
                    rows = asked(connection, "SELECT COUNT(*) FROM shop.u")
                    assert rows == ((last.seq - first,),)
                seen.add(last)
        assert len(seen) > VIEWS // 2
    finally:
        stop.set()
        for thread in threads:
            thread.join()
