"""Statements: the same answers as real servers gave in the captures, and the rules beyond them."""

import json
from pathlib import Path

import pytest

from ibb.protocol.capabilities import effective
from ibb.protocol.errors import SqlError
from ibb.protocol.handshake import Greeting, HandshakeResponse
from ibb.protocol.reply import ok
from ibb.protocol.result_set import ColumnType
from ibb.server.automatic_purge import AutomaticPurge
from ibb.server.config import Config
from ibb.server.dump.pacing import Pacing
from ibb.server.dump.semi_sync import SemiSync
from ibb.server.sql.parser import parse_statement
from ibb.server.statements.session_memory import SessionMemory, SharedMemory
from ibb.server.statements.statements import Statements
from ibb.server.statements.variables import SessionVariables
from ibb.storage.clock import SystemClock

CAPTURES = Path(__file__).parent.parent.parent / "data" / "captures"
COM_QUERY = 3


class Facts:
    """A server that stands still."""

    def __init__(self, history):
        self.config = Config(server_version="10.11.19-MariaDB-0+deb12u1-log")
        self.history = history
        self.server_id = 101
        self.relays = True
        self.semi_sync = SemiSync()
        self.pacing = Pacing(0, 0, SystemClock())
        self.place = "/binlogs"
        self.purging = AutomaticPurge(history)
        self.global_values = {}
        self.accounts = []
        self.tls = None

    def time_zone(self):
        return "UTC"

    def processes(self, context):
        return []

    def now(self):
        return 1795247412.5

    def port(self):
        return 3307

    def host_name(self):
        return "here"

    def status(self):
        return {"Uptime": "5", "Threads_connected": "1"}

    def replicas(self):
        return []


class Session:
    def __init__(self, history, collation=8):
        self.variables = SessionVariables(collation, SessionMemory(SharedMemory()))
        self.statements = Statements(Facts(history), self.variables, 17, "repl@localhost")

    def run(self, sql):
        return self.statements.answer(parse_statement(sql))

    def payloads(self, sql, capabilities):
        result = self.run(sql)
        if result is None:
            return [ok(status=self.variables.status)]
        return list(result.packets(capabilities))

    def row(self, sql):
        (row,) = self.run(sql).rows
        return tuple(row)

    def value(self, sql):
        (value,) = self.row(sql)
        return value


@pytest.fixture
def session(store):
    return Session(store)


def exchanges(path):
    """Yield each statement of a capture with the payloads that answered it."""
    packets = json.loads(path.read_text())
    for index, packet in enumerate(packets):
        payload = bytes.fromhex(packet.get("hex", ""))
        if packet["dir"] != "C" or not payload or payload[0] != COM_QUERY or packet["seq"]:
            continue
        answer = []
        for reply in packets[index + 1 :]:
            if reply["dir"] != "S" or "hex" not in reply or "len" in reply:
                break
            answer.append(bytes.fromhex(reply["hex"]))
        yield payload[1:].decode(), answer


def login(path):
    """Return the collation of a captured session, and the capabilities in effect."""
    first, second = json.loads(path.read_text())[:2]
    greeting = Greeting.parse(bytes.fromhex(first["hex"]))
    response = HandshakeResponse.parse(bytes.fromhex(second["hex"]), greeting.capabilities)
    both = effective(greeting.capabilities, response.capabilities)
    return response.collation or greeting.collation, both


CAPTURED = [path for path in sorted(CAPTURES.glob("p10-*.json")) if any(exchanges(path))]
OTHER_VALUES = ("binlog_gtid_pos", "MASTER STATUS", "UNIX_TIMESTAMP")  # history, time


@pytest.mark.parametrize("path", CAPTURED, ids=lambda path: path.stem)
def test_every_captured_statement_gets_the_captured_answer(path, store):
    collation, capabilities = login(path)
    session = Session(store, collation)
    seen = 0
    for sql, answer in exchanges(path):
        if not answer:
            continue
        if answer[0][:1] == b"\xff":
            with pytest.raises(SqlError) as caught:
                session.run(sql)
            assert caught.value.code == int.from_bytes(answer[0][1:3], "little")
            continue
        payloads = session.payloads(sql, capabilities)
        seen += 1
        count = len(payloads) if not any(part in sql for part in OTHER_VALUES) else 2
        for ours, theirs in zip(payloads[:count], answer[:count], strict=True):
            assert ours == theirs, sql
    assert seen


def test_columns_have_the_types_of_the_expressions(session):
    session.run("SET @text = 'x', @number = 5")
    types = {
        "UNIX_TIMESTAMP()": ColumnType.LONGLONG,
        "@text": ColumnType.LONG_BLOB,
        "@unset": ColumnType.LONG_BLOB,
        "@number": ColumnType.LONGLONG,
        "@@server_id": ColumnType.LONGLONG,
        "@@binlog_checksum": ColumnType.VAR_STRING,
        "VERSION()": ColumnType.VAR_STRING,
        "binlog_gtid_pos('x', 4)": ColumnType.LONG_BLOB,
    }
    for expression, type_ in types.items():
        (column,) = session.run(f"SELECT {expression}").columns
        assert (column.name, column.type) == (expression, type_)


@pytest.mark.parametrize(
    ("sql", "value"),
    [
        ("select UNIX_TIMESTAMP()", 1795247412),
        ("SELECT @@server_id;", 101),
        ("SELECT @@GLOBAL.gtid_domain_id", 0),
        ("SELECT @@session.autocommit", 1),
        ("SELECT @@gtid_binlog_pos", "0-1-10"),
        ("SELECT @@global.gtid_binlog_state", "0-1-10"),
        ("SELECT @@gtid_slave_pos", "0-1-10"),
        ("SELECT @@GLOBAL . binlog_checksum", "CRC32"),
        ("SELECT CONNECTION_ID()", 17),
        ("SELECT DATABASE()", None),
        ("SELECT BINLOG_GTID_POS('', 4)", ""),
        ("SELECT binlog_gtid_pos('binlog-000000.ibb', 4)", ""),
        ("SELECT binlog_gtid_pos('ibb-bin.000001', 4)", ""),
        ("SELECT binlog_gtid_pos('bin.000002', 5341)", None),
        ("SELECT binlog_gtid_pos('', 'x')", None),
        ("SELECT 'it''s' AS word LIMIT 1", "it's"),
        ("/* driver */ SELECT -5 FROM DUAL -- end", -5),
        ("SELECT NULL", None),
        ("SELECT MOD(-7, 3)", -1),
        ("SELECT CRC32('test-string')", 1922069637),
        ("SELECT LOCATE('B', 'abcb', 3)", 4),
        ("SELECT LOCATE('a', 'abc', 0)", 0),
        ("SELECT INSTR('abc', 'x')", 0),
        ("SELECT REVERSE('aä€')", "€äa"),
        ("SELECT LEFT(SHA2('a', 256), 8)", "ca978112"),
        ("SELECT SHA2('a', 7)", None),
        ("SELECT 'a\\%b' LIKE 'axb'", 0),
        ("SELECT 'axb' LIKE 'a\\_b'", 0),
        ("SELECT 'a_b' LIKE 'a\\_b'", 1),
        ("SELECT LENGTH('\\%')", 2),
        ("SELECT BINARY 'a' = 'A'", 0),
        ("SELECT 'a' COLLATE utf8_bin = 'A'", 0),
        ("SELECT 'a' COLLATE utf8mb4_general_ci = 'A'", 1),
        ("SELECT 'abc' LIKE BINARY 'A%'", 0),
        ("SELECT TIMESTAMP '2024-01-31 10:30:00' + 0", 20240131103000),
        ("SELECT 'a' = 'A '", 1),
        ("SELECT 0b1000001", b"A"),
    ],
)
def test_an_expression_has_its_value(session, sql, value):
    assert session.value(sql) == value


def test_several_columns_and_aliases_come_in_order(session):
    result = session.run("SELECT @@version AS v, @@port `the port`, 7 seven")
    assert [column.name for column in result.columns] == ["v", "the port", "seven"]
    assert list(result.rows[0]) == ["10.11.19-MariaDB-0+deb12u1-log", 3307, 7]


@pytest.mark.parametrize(
    "sql",
    [
        "SET @A = '4', @@session.sql_mode = '', NAMES utf8;",
        "SET @a := 4",
        "set @`a`=4 , @b=@@global.binlog_checksum",
        "SET NAMES 'utf8mb4' COLLATE 'utf8mb4_bin'",
        "SET CHARACTER SET latin1",
        "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
        "SET autocommit=ON, wait_timeout=9999999",
        "SET net_write_timeout=7200",
        "SET @slave_uuid=uuid()",
        "set autocommit=1, sql_mode = concat(@@sql_mode,',STRICT_TRANS_TABLES')",
        "set session_track_schema=1, tx_isolation='READ-COMMITTED', time_zone='+00:00'",
        "SET LOCAL skip_replication = 1",
        "SET character_set_results = NULL",
        "USE information_schema",
        "BEGIN",
        "COMMIT",
    ],
)
def test_what_needs_no_more_than_ok_gets_ok(session, sql):
    assert session.run(sql) is None


def test_a_java_driver_gets_every_variable_of_its_first_question(session):
    names = [
        "session.auto_increment_increment",
        "character_set_client",
        "character_set_connection",
        "character_set_results",
        "character_set_server",
        "collation_server",
        "collation_connection",
        "init_connect",
        "interactive_timeout",
        "license",
        "lower_case_table_names",
        "max_allowed_packet",
        "net_write_timeout",
        "performance_schema",
        "query_cache_size",
        "query_cache_type",
        "sql_mode",
        "system_time_zone",
        "time_zone",
        "tx_isolation",
        "wait_timeout",
    ]
    asked = ", ".join(f"@@{name}  AS {name.rpartition('.')[2]}" for name in names)
    result = session.run(f"/* mysql-connector-java-8.0.33 */SELECT  {asked}")
    assert len(result.rows[0]) == len(names)
    assert None not in result.rows[0]


def test_user_variables_are_one_in_any_case_and_keep_their_type(session):
    session.run("SET @Slave_Connect_State='0-1-5', @n=7")
    assert session.row("SELECT @SLAVE_connect_STATE, @N, @other") == ("0-1-5", 7, None)
    session.run("SET @slave_connect_state=NULL")
    assert session.value("SELECT @slave_connect_state") is None


def test_a_session_has_its_own_system_variables(session):
    session.run("SET autocommit=0, skip_replication=1")
    assert session.value("SELECT @@autocommit") == 0
    assert session.value("SELECT @@global.autocommit") == 1
    assert session.row("SHOW VARIABLES LIKE 'autocommit'") == ("autocommit", "OFF")
    assert session.row("SHOW GLOBAL VARIABLES LIKE 'autocommit'") == ("autocommit", "ON")
    assert session.variables.status == 0
    assert session.variables.skip_replication
    session.statements.reset()
    assert not session.variables.skip_replication


def names(result):
    return [row[0] for row in result.rows]


def test_show_variables_matches_names_as_like_does(session):
    assert names(session.run("SHOW VARIABLES LIKE 'SERVER_ID'")) == ["server_id"]
    assert names(session.run("SHOW VARIABLES LIKE 'binlog%a_a'")) == ["binlog_row_metadata"]
    assert names(session.run("SHOW GLOBAL VARIABLES LIKE 'server\\_id'")) == ["server_id"]
    assert session.run("SHOW VARIABLES LIKE 'rpl_semi_sync_master_enabled'").rows == [
        ("rpl_semi_sync_master_enabled", "OFF")
    ]
    semi_sync = "('rpl_semi_sync_master_enabled', 'rpl_semi_sync_source_enabled')"
    assert names(session.run(f"SHOW VARIABLES WHERE Variable_name IN {semi_sync}")) == [
        "rpl_semi_sync_master_enabled"
    ]
    assert names(
        session.run("SHOW VARIABLES WHERE Variable_name = 'port' OR Variable_name LIKE 'vers%nt'")
    ) == ["port", "version_comment"]
    everything = names(session.run("SHOW VARIABLES"))
    assert everything == sorted(everything)
    assert len(everything) > 50


def test_the_binlog_is_shown(session, store):
    store.purge_to(store.files()[0].name)  # waits for the file that is made ahead; removes none
    for sql in ("SHOW MASTER STATUS", "SHOW BINLOG STATUS"):
        result = session.run(sql)
        end = store.end()
        assert [list(row) for row in result.rows] == [["binlog-000000.ibb", end.offset, "", ""]]
    for sql in ("SHOW BINARY LOGS", "show master logs;"):
        assert [list(row) for row in session.run(sql).rows] == [
            [file.name, file.size] for file in store.files()
        ]
    assert session.row("SHOW STATUS LIKE 'uptime'") == ("Uptime", "5")
    assert names(session.run("SHOW WARNINGS")) == []


@pytest.mark.parametrize(
    ("sql", "code", "text"),
    [
        ("SELECT @@nosuch", 1193, "Unknown system variable 'nosuch'"),
        ("SELECT @@global.binlog_storage_engine", 1193, "'binlog_storage_engine'"),
        ("SET nosuch=1", 1193, "Unknown system variable 'nosuch'"),
        ("SET @x = @@nosuch", 1193, "nosuch"),
        ("SET GLOBAL nosuch=1", 1193, "nosuch"),
        ("SET port=1", 1238, "port"),
        ("SELECT @@session.port", 1238, "port"),
        ("SET autocommit='maybe'", 1231, "can't be set to the value of 'maybe'"),
        ("SET gtid_domain_id='long'", 1232, "gtid_domain_id"),
        ("SET NAMES klingon", 1115, "Unknown character set: 'klingon'"),
        ("SHOW BINARY LOG STATUS", 1064, "to use near 'LOG STATUS' at line 1"),
        ("SELECT\n1 +", 1064, "near '' at line 2"),
        ("DROP TABLE t", 1046, "No database selected"),
        ("SELECT 'open", 1064, "near ''open' at line 1"),
        ("SET", 1064, "near '' at line 1"),
        ("SHOW", 1064, "near ''"),
        ("SELECT 1 ; SELECT 2", 1064, "near 'SELECT 2'"),
        ("SELECT " + "1," * 5000 + "1", 1064, "syntax"),
        (" ;", 1065, "Query was empty"),
        ("SELECT NAP(5)", 1305, "NAP"),
        ("CHECK TABLE t", 1235, "yet support"),
    ],
)
def test_what_is_not_understood_gets_mariadbs_error(session, sql, code, text):
    with pytest.raises(SqlError) as caught:
        session.run(sql)
    assert caught.value.code == code
    assert text in caught.value.message


def test_user_variables_are_bounded(session):
    for number in range(256):
        session.run(f"SET @v{number}=1")
    session.run("SET @v0=2")
    with pytest.raises(SqlError) as caught:
        session.run("SET @one_more=1")
    assert caught.value.code == 1041


def test_warnings_stay_until_there_are_others_or_a_table_is_used(session):
    session.run("SELECT 'a' + 1")
    for sql in ("SELECT 1", "SET @a = 1", "SHOW BINLOG STATUS", "SHOW WARNINGS", "BEGIN"):
        session.run(sql)
        assert session.value("SELECT @@warning_count") == 1, sql
        assert session.statements.context.diagnostics.new == 0
    session.run("SELECT 'b' + 1, 'c' + 1")
    assert session.value("SELECT @@warning_count") == 2
    session.run("SHOW VARIABLES LIKE 'nosuch'")
    assert session.value("SELECT @@warning_count") == 0


def test_a_select_has_no_more_rows_than_its_session_wants(session):
    session.run("SET sql_select_limit = 2")
    for sql in ("SELECT * FROM information_schema.collations", "SHOW VARIABLES"):
        assert len(session.run(sql).rows) == 2
    assert len(session.run("SELECT * FROM information_schema.collations LIMIT 3").rows) == 3
    session.run("SET sql_select_limit = 0")
    assert session.run("SELECT 1").rows == []
    session.run("SET sql_select_limit = DEFAULT")
    assert len(session.run("SELECT 1").rows) == 1
