"""Where statements are answered: who may keep whom waiting."""

import pytest

from ibb.server.sql.parser import parse_prepared
from ibb.server.statements.place import CALL_CHARS, EFFORT_MAX, Place, place_of

LONG_TEXT = f"SELECT LENGTH('{'a' * (1 << 14)}')"


def place(sql, data_chars=0):
    return place_of(parse_prepared(sql).statement, len(sql), data_chars)


@pytest.mark.parametrize(
    "sql",
    [
        "SHOW VARIABLES LIKE 'SERVER_ID'",
        "SHOW GLOBAL VARIABLES LIKE 'gtid\\_strict%'",
        "SELECT @@GLOBAL.server_id",
        "SELECT UNIX_TIMESTAMP()",
        "SELECT @@GLOBAL.gtid_domain_id",
        "SET @master_heartbeat_period = 4500000000",
        "SET @mariadb_slave_capability = 4",
        "SET @master_binlog_checksum = @@global.binlog_checksum",
        f"SET @slave_connect_state = '{'0-1-1,' * 300_000}'",
        "SET NAMES utf8mb4",
        "SHOW WARNINGS",
        "SHOW PROCESSLIST",
        "SHOW STATUS",
        "SHOW REPLICA HOSTS",
        "KILL 5",
    ],
    ids=lambda sql: sql[:40],
)
def test_what_needs_no_disk_waits_for_no_thread(sql):
    assert place(sql) is Place.LOOP


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT @@gtid_binlog_pos",
        "SELECT CONCAT(@@gtid_binlog_state)",
        "SELECT IFNULL(1 + LENGTH(BINLOG_GTID_POS('', 4)), 0)",
        "SELECT CASE 1 WHEN 1 THEN 2 ELSE @@gtid_current_pos END",
        "SELECT CASE @@gtid_binlog_pos WHEN 1 THEN 2 END",
        "SELECT CAST(@@gtid_binlog_pos AS CHAR)",
        "SELECT @a := MASTER_GTID_WAIT('0-1-1')",
        "SELECT 1 WHERE @@gtid_binlog_pos = ''",
        "SELECT variable_value FROM information_schema.global_status WHERE variable_name = 'a'",
        "SELECT id, user, host, command, state FROM information_schema.processlist WHERE time > 5",
        "SET @x = @@gtid_binlog_state",
        "SET @x = 1, @y = -@@gtid_binlog_state",
        "SET GLOBAL max_connections = 7",
        "DO SLEEP(LENGTH(@@gtid_binlog_pos))",
        "KILL LENGTH(@@gtid_binlog_pos)",
        "EXECUTE s USING @@gtid_binlog_pos",
        "PREPARE s FROM @long",
        "EXECUTE IMMEDIATE @long",
        "SHOW VARIABLES",
        "SHOW VARIABLES LIKE 'gtid%'",
        "SHOW VARIABLES WHERE Variable_name = 'server_id'",
        "SHOW MASTER STATUS",
        "SHOW BINARY LOGS",
        "SHOW BINLOG STORAGE",
        "FLUSH BINARY LOGS",
        "PURGE BINARY LOGS TO 'binlog-000001.ibb'",
    ],
)
def test_what_may_use_the_disk_is_for_a_thread(sql):
    assert place(sql) is Place.BRIEF


@pytest.mark.parametrize(
    "sql",
    [
        "SHOW BINLOG EVENTS LIMIT 1",
        "SHOW BINLOG LEASES",
        LONG_TEXT,
        LONG_TEXT.replace("SELECT", "DO"),
        LONG_TEXT.replace("SELECT", "KILL"),
        f"SET @a = 1, @b = CONCAT('{'a' * (1 << 14)}')",
        f"SHOW STATUS WHERE Variable_name LIKE '{'a' * 1000}'",
        f"SELECT 1 FROM information_schema.collations WHERE id LIKE '{'a' * 1000}'",
    ],
    ids=lambda sql: sql[:40],
)
def test_what_may_take_its_time_waits_for_others_that_do(sql):
    assert place(sql) is Place.LONG


def test_what_a_statement_computes_with_counts():
    sql = "SELECT @a LIKE '%b'"
    most = EFFORT_MAX // (len(sql) // CALL_CHARS)
    assert place(sql, most // 2) is Place.LOOP
    assert place(sql, most) is Place.LONG
    assert place("SELECT 'a'", EFFORT_MAX) is Place.LOOP
    assert place("SELECT @@GLOBAL.server_id", EFFORT_MAX) is Place.LOOP


@pytest.mark.parametrize(
    "growing",
    [
        "@a := REPLACE(REPLACE('aaaaaaaaaa', 'a', 'aaaaaaaaaa'), 'a', 'aaaaaaaaaa')",
        f"{'HEX(' * 20}'a'{')' * 20}",
        "CONCAT_WS('-----------', '', '', '', '', '')",
        "@a := CONCAT('aaaaaaaaaa', 'aaaaaaaaaa'), @a := CONCAT(@a, @a)",
    ],
)
def test_what_a_statement_makes_to_compute_with_counts_as_long_as_it_may_be(growing):
    assert place(f"SELECT {growing}") is Place.LOOP
    assert place(f"SELECT {growing}{', CRC32(@a)' * 20}") is Place.LONG
    assert place(f"SELECT 1{', CRC32(@a)' * 20}") is Place.LOOP


def test_what_is_computed_again_after_each_wait_counts_each_time():
    assert place("DO SLEEP(1), SLEEP(2), SLEEP(3)") is Place.LOOP
    assert place(f"DO 1{', ABS(1)' * 100}, SLEEP(1)") is Place.LOOP
    assert place(f"DO 1{', SLEEP(1)' * 100}") is Place.LONG
