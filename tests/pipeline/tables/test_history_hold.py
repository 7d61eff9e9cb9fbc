"""The lease of a pipeline: made before anything is read, moved with what its tables have."""

import logging
import threading

import pymysql
import pytest

from ibb.demo.serve_process import ServeProcess
from ibb.pipeline.errors import LeaseFailed
from ibb.pipeline.tables import pipeline
from ibb.pipeline.tables.config import ConfigError, PipelineConfig, ServerConfig, parse_config
from ibb.pipeline.tables.history_hold import MOVE_SECONDS, HistoryHold
from ibb.pipeline.tables.ledger import Ledger
from ibb.pipeline.tables.pipeline import Pipeline, Progress
from ibb.pipeline.tables.place import Place
from ibb.pipeline.tables.prepared_xa import Prepared
from ibb.protocol.gtid import Gtid, GtidPosition
from ibb.storage import Store
from ibb.storage.os_disk import OsDisk
from ibb.storage.position import Position
from ibb.storage.read_only import ReadOnlyHistory
from ibb.storage.state_scan import read_state

from ..published import OPTIONS, made_store, publish

PASSWORD = "not to be shown"


class Moves:
    """Takes the place of a lease; fails while *away*."""

    def __init__(self):
        self.positions = []
        self.tried = 0
        self.away = False

    def move_to(self, position):
        self.tried += 1
        if self.away:
            raise LeaseFailed("the server is away")
        self.positions.append(position)


def position_of(text):
    return GtidPosition.parse(text)


def ledger_at(text, **more):
    return Ledger(Place(position_of(text), 0), **more)


@pytest.fixture
def binlogs(tmp_path):
    path = tmp_path / "binlogs"
    made_store(path, 1500)
    return path


@pytest.fixture
def lease():
    return Moves()


def config_of(binlogs, lease, **more):
    target = str(binlogs.parent / "lake")
    return PipelineConfig("test", str(binlogs), target, include=("none.*",), lease=lease, **more)


def state_at(binlogs, file_no=None):
    """Return the state at the end, or at the beginning of a file."""
    history = ReadOnlyHistory(OsDisk(), str(binlogs))
    try:
        if file_no is None:
            return history.state().position()
        entries = read_state(history.pages, file_no, 1).entries
        return GtidPosition(entries)
    finally:
        history.close()


def test_before_a_first_snapshot_it_holds_what_comes_from_now_on(binlogs, lease):
    server = ServerConfig()
    HistoryHold(config_of(binlogs, lease, server=server), lambda: 0.0).begin(None)
    HistoryHold(config_of(binlogs, lease, server=server), lambda: 0.0).begin(ledger_at(""))
    HistoryHold(config_of(binlogs, lease), lambda: 0.0).begin(None)  # which reads all there is
    HistoryHold(config_of(binlogs, lease, server=server), lambda: 0.0).begin(ledger_at("0-1-7"))
    end = str(state_at(binlogs))
    assert lease.positions == [end, end, "", "0-1-7"]


def test_it_moves_now_and_then(binlogs, lease):
    now = [100.0]
    hold = HistoryHold(config_of(binlogs, lease), lambda: now[0])
    hold.begin(ledger_at("0-1-1"))
    hold.behind(ledger_at("0-1-2"))
    now[0] += MOVE_SECONDS - 1
    hold.behind(ledger_at("0-1-3"))
    now[0] += 1
    hold.behind(ledger_at("0-1-4"))
    hold.behind(ledger_at("0-1-5"))
    now[0] += MOVE_SECONDS
    hold.behind(ledger_at("0-1-5"))
    now[0] += MOVE_SECONDS
    hold.behind(ledger_at("0-1-5"))  # nothing new, but it must not lapse
    hold.behind(ledger_at("0-1-6"), at_once=True)
    assert lease.positions == [f"0-1-{number}" for number in (1, 4, 5, 5, 6)]


def test_a_server_that_goes_is_told_of_and_asked_again_later(binlogs, lease, caplog):
    now = [100.0]
    hold = HistoryHold(config_of(binlogs, lease), lambda: now[0])
    lease.away = True
    with pytest.raises(LeaseFailed):
        hold.begin(ledger_at("0-1-1"))
    with caplog.at_level(logging.WARNING):
        hold.behind(ledger_at("0-1-2"))
        hold.behind(ledger_at("0-1-2"))
    assert (lease.tried, caplog.text.count("the server is away")) == (2, 1)
    now[0] += MOVE_SECONDS
    lease.away = False
    hold.behind(ledger_at("0-1-2"))
    assert lease.positions == ["0-1-2"]


def test_it_stays_in_front_of_what_is_prepared(binlogs, lease):
    xa = {
        name: Prepared(Gtid(0, 1, 9), Position(file_no, 4096), changes=True)
        for name, file_no in (("'a'", 1), ("'b'", 0))
    }
    hold = HistoryHold(config_of(binlogs, lease), lambda: 0.0)
    hold.behind(ledger_at("0-1-99", prepared=xa), at_once=True)
    hold.behind(ledger_at("0-1-99", prepared={"'a'": xa["'a'"]}), at_once=True)
    first, second = (position_of(text) for text in lease.positions)
    assert set(first) == set()
    assert set(second) == set(state_at(binlogs, 1)) != set()


def test_a_pipeline_without_one_does_not_even_look(binlogs):
    config = config_of(binlogs.parent / "nowhere", None, server=ServerConfig())
    asked = []
    hold = HistoryHold(config, lambda: asked.append("time") or 0.0)
    hold.begin(None)
    hold.behind(ledger_at("0-1-1"), at_once=True)
    assert asked == []


def run(config, batches):
    progress = Progress(lambda *_: None, lambda batch, _: batches.append(str(batch.end)))
    Pipeline(config, progress).run(threading.Event(), once=True)


def test_a_run_holds_before_it_reads_and_lets_go_at_its_end(binlogs, lease, monkeypatch):
    config, batches, held = config_of(binlogs, lease), [], []
    read = pipeline.read_batches

    def noted(*arguments):
        held.append(list(lease.positions))
        return read(*arguments)

    monkeypatch.setattr(pipeline, "read_batches", noted)
    run(config, batches)
    assert held == [[""]]
    assert len(batches) > 1
    assert (lease.positions[0], lease.positions[-1]) == ("", batches[-1])
    del lease.positions[:]
    monkeypatch.setattr(pipeline, "read_batches", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        run(config, [])
    assert lease.positions == [batches[-1]] * 2


def test_a_server_purges_what_the_tables_have_and_nothing_else(tmp_path):
    binlogs, folder, secret = tmp_path / "binlogs", tmp_path / "folder", tmp_path / "secret"
    with Store.open(binlogs, OPTIONS) as store:
        publish(store, 4000)
    folder.mkdir()
    secret.write_text(PASSWORD + "\n")
    grants = "REPLICATION SLAVE, BINLOG MONITOR, BINLOG ADMIN"
    server = ServeProcess(binlogs, folder, user="lake", password=PASSWORD, grants=grants).start()
    try:
        values = {
            "pipeline": {"name": "shop"},
            "source": {"path": str(binlogs)},
            "target": {"path": "lake"},
            "tables": {"include": ["none.*"]},
            "lease": {"url": f"ibb://lake@127.0.0.1:{server.port}", "password_file": "secret"},
        }
        config = parse_config(values, tmp_path)
        missing = {**values["lease"], "password_file": "nothing"}
        with pytest.raises(ConfigError, match=r"^lease\.password_file: .*nothing cannot be read"):
            run(parse_config({**values, "lease": missing}, tmp_path), [])
        assert PASSWORD not in repr(config)
        HistoryHold(config, lambda: 0.0).begin(None)
        with (
            pymysql.connect(
                host="127.0.0.1", port=server.port, user="lake", password=PASSWORD
            ) as connection,
            connection.cursor() as cursor,
        ):

            def files():
                cursor.execute("SHOW BINARY LOGS")
                return [row[0] for row in cursor.fetchall()]

            names = files()
            assert len(names) > 3
            cursor.execute(f"PURGE BINARY LOGS TO '{names[-1]}'")
            cursor.execute("SHOW WARNINGS")
            assert "lease 'shop'" in str(cursor.fetchall())
            assert files() == names
            run(config, [])
            cursor.execute(f"PURGE BINARY LOGS TO '{names[-1]}'")
            assert files() == names[-2:]  # which a recovery would need
    finally:
        server.kill()
