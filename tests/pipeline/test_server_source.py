"""A running server as the source: a real MariaDB, and `ibb serve` that relays it."""

import functools
import operator

import pytest

from ibb.demo.serve_process import ServeProcess
from ibb.pipeline.change_rows import CHANGE_COLUMNS
from ibb.pipeline.errors import DataLossError, OptionError, ServerRefused
from ibb.pipeline.options import SourceOptions
from ibb.pipeline.read_plan import groups_of, plan_read
from ibb.pipeline.rows import columns_of, rows_of
from ibb.protocol.client_login import LoggedIn
from ibb.protocol.gtid import Gtid
from ibb.server.connections.certificate import self_signed
from ibb.storage import Store

from ..integration.conftest import mariadb_10, new_rig
from ..integration.mariadb_server import PASSWORD, USER
from ..integration.waiting import wait_until
from .published import OPTIONS, publish
from .running_server import Servers, Source, drain, gtids, read, streamed, wanted_gtids, write

__all__ = ["mariadb_10"]
pytestmark = [pytest.mark.live, pytest.mark.xdist_group("server_source")]

LARGE = 9 << 20  # bytes of a row: more than is held of a group


@pytest.fixture(scope="module")
def servers(mariadb_10, tmp_path_factory):
    with new_rig() as rig:
        primary = rig.primary(mariadb_10, "--binlog-format=ROW", "--binlog-row-metadata=FULL")
        secret = tmp_path_factory.mktemp("secret") / "password"
        secret.write_text(PASSWORD + "\n")
        primary.run(
            "CREATE DATABASE shop",
            "CREATE TABLE shop.orders (id INT PRIMARY KEY, word LONGTEXT) CHARSET utf8mb4",
        )
        for first in range(0, 24, 6):
            write(primary, first, 6)
            primary.run("FLUSH BINARY LOGS")
        primary.run(f"INSERT INTO shop.orders VALUES (1000, REPEAT('x', {LARGE}))")
        relay = rig.ibb("--max-binlog-size=262144").relay_from(primary.port).start()
        made = Servers(primary, relay, secret)
        made.caught_up()
        yield made


@pytest.fixture(params=["mariadb", "ibb"])
def source(request, servers):
    return servers.source(request.param)


@pytest.mark.parametrize("partitions", ["1", "4", "100000"])
def test_every_group_is_read_once(servers, source, partitions):
    wanted = wanted_gtids(servers.primary)
    tasks = plan_read(source.options(minPartitions=partitions))
    found = gtids(tasks)
    assert sorted(found) == sorted(wanted)
    if partitions == "1":
        assert found == wanted
    else:
        assert len(tasks) > 2


def test_domains_begin_and_end_by_themselves(servers, source):
    every = [Gtid.parse(gtid) for gtid in wanted_gtids(servers.primary)]
    by_domain = {domain: [gtid for gtid in every if gtid.domain == domain] for domain in (0, 1)}
    ends = {0: by_domain[0][3], 1: by_domain[1][-1]}  # one long before the other
    end = ",".join(map(str, ends.values()))
    wanted = [
        str(gtid) for gtid in every if gtid.domain in ends and gtid.seq <= ends[gtid.domain].seq
    ]
    assert read(source.options(endingGtid=end)) == wanted
    starts = {0: by_domain[0][-4], 1: by_domain[1][2]}
    start = ",".join(map(str, starts.values()))
    left = [
        str(gtid)
        for gtid in every
        if gtid.domain not in starts or gtid.seq > starts[gtid.domain].seq
    ]
    found = read(source.options(startingGtid=start, minPartitions="100000"))
    assert sorted(found) == sorted(left)


def test_bounds_and_domains(servers, source):
    wanted = [gtid for gtid in wanted_gtids(servers.primary) if gtid[0] == "1"]
    found = read(source.options(domains="1", startingGtid=wanted[2], minPartitions="3"))
    assert found == wanted[3:]
    assert read(source.options(startingGtid="latest")) == []
    end = wanted[7]
    assert read(source.options(endingGtid=end)) == wanted[:8]
    with pytest.raises(OptionError, match=r"option endingGtid: .* is before"):
        plan_read(source.options(startingGtid=wanted[9], endingGtid=end))
    with pytest.raises(
        OptionError, match=r"option startingGtid: .*7-7|option startingGtid: .*1-7-7"
    ):
        plan_read(source.options(startingGtid="1-7-7777"))


def batches(options, tasks, columns):
    return [batch for task in tasks for batch in rows_of(task, options, columns)]


def test_changes_are_those_of_the_relays_directory(servers, source):
    options = source.options(mode="changes", minPartitions="3")
    found = batches(options, plan_read(options), CHANGE_COLUMNS)
    files = SourceOptions.parse({"path": str(servers.relay.directory), "mode": "changes"})
    wanted = batches(files, plan_read(files), CHANGE_COLUMNS)

    def rows(tables):
        listed = [row for table in tables for row in table.to_pylist()]
        return sorted(listed, key=lambda row: (row["gtid"], row["position"], row["row"]))

    assert rows(found) == rows(wanted)
    assert len(rows(found)) > 48


def test_a_table_has_its_columns(servers, source):
    options = source.options(table="shop.orders", columns="id,word,_op,_gtid")
    columns = columns_of(options)
    assert [column.name for column in columns] == ["id", "word", "_op", "_gtid"]
    found = batches(options, plan_read(options), columns)
    rows = [row for batch in found for row in batch.to_pylist()]
    assert max(len(row["word"]) for row in rows) == LARGE
    assert {row["id"] for row in rows} == {*range(24), 1000}


def test_an_xa_transaction_is_found_where_it_was_prepared(servers, source):
    primary = servers.primary
    before = primary.binlog_position()
    primary.run(
        "XA BEGIN 'one'",
        "INSERT INTO shop.orders VALUES (2000, 'xa')",
        "XA END 'one'",
        "XA PREPARE 'one'",
    )
    between = primary.binlog_position()
    primary.run("FLUSH BINARY LOGS", "XA COMMIT 'one'", "DELETE FROM shop.orders WHERE id = 2000")
    servers.caught_up()
    for start in (before, between):
        options = source.options(mode="changes", startingGtid=start)
        found = batches(options, plan_read(options), CHANGE_COLUMNS)
        ops = [row["op"] for batch in found for row in batch.to_pylist()]
        assert ops == ["insert", "delete"]


def test_a_stream_goes_on_from_its_offsets(servers, source):
    reader = streamed(source, maxGroupsPerTrigger="20")
    found, offset = drain(reader, reader.initialOffset())
    assert len(found) > 2
    assert max(map(len, found)) == 20
    wanted = wanted_gtids(servers.primary)
    assert functools.reduce(operator.iadd, found, []) == wanted
    assert offset["file"] >= 0
    assert offset["mark"]
    reader.stop()
    write(servers.primary, 5000 + source.port % 1000, 3)
    servers.caught_up()
    restarted = streamed(source)
    assert restarted.reportLatestOffset()["gtid"]
    end = restarted.latestOffset(offset)
    more = gtids(part.value for part in restarted.partitions(offset, end))
    assert more == wanted_gtids(servers.primary)[len(wanted) :]
    assert len(more) == 6
    restarted.stop()


def test_lag_is_told(source):
    reader = streamed(source, maxGroupsPerTrigger="5")
    reader.latestOffset(reader.initialOffset())
    told = reader.reportLatestOffset()
    another = streamed(source)
    assert told["gtid"] == another.reportLatestOffset()["gtid"], "it has begun nothing"
    another.stop()
    assert told["groupsBehind"] > 20
    assert told["bytesBehind"] > 0
    assert told["secondsBehind"] >= 0
    reader.stop()


def purge(primary):
    """Purge all files but the last; a dump that was left may keep them for a moment."""

    def is_done():
        primary.run(f"PURGE BINARY LOGS TO '{primary.binlog_files()[-1].name}'")
        return len(primary.binlog_files()) == 1

    wait_until(is_done, 60)


def test_a_purge_and_a_reset_are_named(mariadb_10, servers, tmp_path):
    with new_rig() as rig:
        primary = rig.primary(mariadb_10, "--binlog-format=ROW")
        source = Source(primary.port, servers.secret)
        primary.run("CREATE DATABASE shop", "CREATE TABLE shop.orders (id INT, word TEXT)")
        reader = streamed(source)
        early = reader.latestOffset(reader.initialOffset())
        write(primary, 1, 9)
        planned = reader.latestOffset(early)
        write(primary, 10, 3)
        primary.run("FLUSH BINARY LOGS")
        write(primary, 20, 3)
        purge(primary)
        with pytest.raises(OptionError, match=r"startingGtid: .*purged; earliest is left: .*1236"):
            plan_read(source.options(startingGtid=early["gtid"]))
        with pytest.raises(DataLossError, match=r"were purged before they were read .*1236"):
            reader.latestOffset(early)
        left = streamed(source, failOnDataLoss="false")
        assert left.partitions(early, planned) == []  # Spark plans an unfinished batch once more
        end = left.latestOffset(early)
        wanted = wanted_gtids(primary)
        assert gtids(part.value for part in left.partitions(early, end)) == wanted
        assert read(source.options()) == wanted
        primary.run("RESET MASTER", "SET GLOBAL gtid_binlog_state = ''")
        for first in (100, 110, 120, 130):  # the file of the offset is there again
            write(primary, first, 10)
            primary.run("FLUSH BINARY LOGS")
        with pytest.raises(DataLossError, match="was begun anew"):
            left.latestOffset(end)
        reader.stop()
        left.stop()


def test_who_is_refused_is_told_without_the_password(servers, tmp_path):
    url = f"mariadb://{USER}@127.0.0.1:{servers.primary.port}"
    wrong = SourceOptions.parse({"url": url, "password": "not to be shown"})
    assert "not to be shown" not in repr(wrong)
    with pytest.raises(ServerRefused, match=r"server 127.0.0.1:\d+: .*Access denied") as caught:
        plan_read(wrong)
    assert "not to be shown" not in str(caught.value)
    verified = SourceOptions.parse({"url": url, "password": PASSWORD, "tls": "verify"})
    with pytest.raises(ServerRefused, match="offers no TLS, which option tls demands"):
        plan_read(verified)


def test_a_certificate_is_proven_or_refused(servers, tmp_path, monkeypatch):
    other = tmp_path / "other.pem"
    other.write_bytes(self_signed("another")[0])
    url = f"ibb://{USER}@127.0.0.1:{servers.relay.port}"
    options = {"url": url, "password": PASSWORD, "startingGtid": "latest"}
    assert plan_read(SourceOptions.parse({**options, "tls": "verify"})) == []
    for wrong in ({"tlsFingerprint": "00" * 32}, {"tlsCa": str(other)}):
        with pytest.raises(ServerRefused, match="certificate"):
            plan_read(SourceOptions.parse({**options, **wrong}))
    with pytest.raises(OptionError, match="option tlsCa, tlsCert, tlsKey: they cannot be used"):
        plan_read(SourceOptions.parse({**options, "tlsCa": "/nowhere.pem"}))
    monkeypatch.setattr(LoggedIn, "proof", lambda *_: False)  # as a server older than 11.4
    with pytest.raises(ServerRefused, match="could not be verified: set tlsCa or tlsFingerprint"):
        plan_read(SourceOptions.parse({**options, "tls": "verify"}))
    for mode in ("prefer", "unverified"):
        assert plan_read(SourceOptions.parse({**options, "tls": mode})) == []


def test_what_is_left_of_a_purged_store_is_read(tmp_path):
    with Store.open(tmp_path / "binlogs", OPTIONS) as store:
        published = publish(store, 3000)
        store.purge_to("binlog-000002.ibb")
    left = [str(group.gtid) for group in groups_of(*files_plan(tmp_path / "binlogs"))]
    assert 0 < len(left) < len(published)
    (tmp_path / "folder").mkdir()
    process = ServeProcess(tmp_path / "binlogs", tmp_path / "folder", user="u", password="p")
    process.start()
    try:
        url = f"ibb://u@127.0.0.1:{process.port}"
        options = SourceOptions.parse({"url": url, "password": "p", "minPartitions": "3"})
        tasks = plan_read(options)
        assert len(tasks) >= 3
        assert sorted(gtids(tasks)) == sorted(left)
    finally:
        process.kill()


def files_plan(path):
    return plan_read(SourceOptions.parse({"path": str(path), "maxPartitionBytes": "1g"}))


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"url": "mariadb://u:p@h"}, "option url: put the password into a file: passwordFile"),
        ({"url": "http://u@h"}, "option url: it must be mariadb://USER@HOST:PORT"),
        ({"url": "ibb://u@127.0.0.1", "path": "/d"}, "option url: either path or url"),
        ({"url": "ibb://u@127.0.0.1", "tls": "maybe"}, "option tls: 'maybe' is none of off"),
        ({"url": "ibb://u@h", "tlsFingerprint": "12"}, "option tlsFingerprint: it must be 64"),
        ({"url": "ibb://u@h", "tlsCert": "c"}, "option tlsKey: tlsCert and tlsKey go together"),
        ({"mode": "groups"}, "option path: missing"),
    ],
)
def test_options_are_checked(options, says):
    with pytest.raises(OptionError, match=says) as caught:
        SourceOptions.parse(options)
    assert "u:p@" not in str(caught.value)


def test_other_machines_are_verified_unless_asked_otherwise():
    def mode(**options):
        return SourceOptions.parse({"url": "ibb://u@db.example", **options}).server.tls.mode

    assert mode() == "verify"
    assert mode(tls="prefer", tlsCa="/ca.pem") == "verify"
    assert mode(tls="off") == "off"
    here = SourceOptions.parse({"url": "mysql://u@localhost"}).server
    assert (here.tls.mode, here.port) == ("prefer", 3306)
