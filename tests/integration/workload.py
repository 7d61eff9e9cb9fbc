"""
A mixed workload for a primary: every kind of event group that a MariaDB 10.11 server writes.

Each aspect is a function that gets a connection of its own; `mixed_workload` runs them all. All
is deterministic in effect when replicated, so primary and replicas can be compared by checksum.
"""

import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pymysql.err import IntegrityError

from .mariadb_server import MariadbServer

if TYPE_CHECKING:
    from pymysql.connections import Connection

BLOB_BYTES = 17 << 20  # above the 16 MiB at which packets are split
HUGE_ROWS = 300
HUGE_ROW_BYTES = 1 << 20
LANES = (0, 5, 9)  # domains
LANE_WRITERS = 4
LANE_TRANSACTIONS = 25

TYPE_COLUMNS = (
    "id INT PRIMARY KEY AUTO_INCREMENT, ti TINYINT, su SMALLINT UNSIGNED, me MEDIUMINT, bi BIGINT,"
    " ub BIGINT UNSIGNED ZEROFILL, f FLOAT, d DOUBLE, n DECIMAL(65,30), b1 BIT(1), b64 BIT(64),"
    " bo BOOLEAN, c CHAR(10), vc VARCHAR(300), u3 VARCHAR(20) CHARACTER SET utf8mb3,"
    " l1 VARCHAR(20) CHARACTER SET latin1, bn BINARY(5), vb VARBINARY(300), tb TINYBLOB, bl BLOB,"
    " mb MEDIUMBLOB, lb LONGBLOB, tt TINYTEXT, tx TEXT, mt MEDIUMTEXT, lt LONGTEXT,"
    " e ENUM('a','b','c'), s SET('x','y','z'), da DATE, t0 TIME, t6 TIME(6), dt DATETIME,"
    " dt3 DATETIME(3), ts TIMESTAMP NULL, ts6 TIMESTAMP(6) NULL, y YEAR, j JSON, u UUID,"
    " i4 INET4, i6 INET6, g GEOMETRY, p POINT, gv INT AS (ti + 1) VIRTUAL,"
    " gs INT AS (me * 2) STORED, hidden INT INVISIBLE DEFAULT 7, vcc VARCHAR(200) COMPRESSED"
)
TYPE_ROW = (
    "(NULL, -128, 65535, -8388608, -9223372036854775808, 18446744073709551615, 1.5, -2.25e300,"
    " -12345.678901234567890123456789, b'1', b'1010101010101010101010101010101010101010101010101',"
    " TRUE, 'char', 'varchar €', 'drei', 'vier', X'00FF', X'DEADBEEF', X'01', X'02', X'03', X'04',"
    " 'tt', 'tx', 'mt', 'lt', 'b', 'x,z', '2024-02-29', '-838:59:59', '12:34:56.654321',"
    " '9999-12-31 23:59:59', '2000-01-01 00:00:00.123', '2001-09-09 01:46:40',"
    " '2038-01-19 03:14:07.999999', 2155, '{\"a\": [1, 2]}',"
    " '123e4567-e89b-12d3-a456-426655440000', '192.0.2.1', '2001:db8::1',"
    " ST_GeomFromText('LINESTRING(0 0,1 1)'), POINT(1, 2), DEFAULT, DEFAULT,"
    " REPEAT('compress me ', 15))"
)


def execute(connection: "Connection[Any]", *statements: str) -> None:
    """Run *statements* one after the other."""
    with connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


def definitions(connection: "Connection[Any]") -> None:
    """DDL of every kind, each its own group."""
    execute(
        connection,
        "CREATE DATABASE shop",
        "USE shop",
        "CREATE TABLE customer (id INT PRIMARY KEY AUTO_INCREMENT, name VARCHAR(50), KEY (name))",
        "CREATE TABLE orders (id INT PRIMARY KEY AUTO_INCREMENT, customer INT,"
        " amount DECIMAL(9,2), note TEXT,"
        " FOREIGN KEY (customer) REFERENCES customer (id) ON DELETE CASCADE)",
        "CREATE TABLE log (id INT PRIMARY KEY AUTO_INCREMENT, word VARCHAR(100)) ENGINE=MyISAM",
        "CREATE TABLE heap (id INT PRIMARY KEY) ENGINE=Aria",
        f"CREATE TABLE types ({TYPE_COLUMNS})",
        "CREATE TABLE parts (id INT PRIMARY KEY, v INT) PARTITION BY HASH (id) PARTITIONS 4",
        "CREATE TABLE versioned (id INT PRIMARY KEY, v INT) WITH SYSTEM VERSIONING",
        "CREATE VIEW rich AS SELECT customer, SUM(amount) AS total FROM orders GROUP BY 1",
        "CREATE FUNCTION twice(n INT) RETURNS INT DETERMINISTIC RETURN n * 2",
        "CREATE PROCEDURE note(word VARCHAR(100)) INSERT INTO log (word) VALUES (word)",
        "CREATE TRIGGER noted AFTER INSERT ON orders FOR EACH ROW"
        " INSERT INTO log (word) VALUES (CONCAT('order ', NEW.id))",
        "CREATE EVENT nightly ON SCHEDULE EVERY 1 DAY DO DELETE FROM log",
        "CREATE SEQUENCE numbers START WITH 100 INCREMENT BY 10 CACHE 5",
        "CREATE TABLE passing (id INT)",
        "RENAME TABLE passing TO gone",
        "TRUNCATE TABLE gone",
        "DROP TABLE gone",
        "CREATE TABLE copied AS SELECT seq AS id, MD5(seq) AS word FROM seq_1_to_200",
        "CREATE OR REPLACE TABLE like_copied LIKE copied",
        "ANALYZE TABLE copied",
        "OPTIMIZE TABLE heap",
    )


def alterations(connection: "Connection[Any]") -> None:
    """ALTER in one group, and in two (START ALTER, then COMMIT or ROLLBACK ALTER)."""
    execute(
        connection,
        "ALTER TABLE customer ADD COLUMN city VARCHAR(30) DEFAULT 'Ulm', ADD INDEX (city)",
        "SET SESSION binlog_alter_two_phase = 1",
        "ALTER TABLE customer ADD COLUMN born DATE, ALGORITHM=COPY",
        "ALTER TABLE copied ADD PRIMARY KEY (id)",
        "CREATE INDEX words ON copied (word)",
    )
    with suppress(IntegrityError):  # after it has begun: customers have several orders
        execute(connection, "ALTER TABLE orders ADD UNIQUE (customer), ALGORITHM=COPY")
    execute(connection, "SET SESSION binlog_alter_two_phase = 0")


def row_changes(connection: "Connection[Any]") -> None:
    """Row events: inserts, updates, deletes, all types, RETURNING, a trigger, a sequence."""
    execute(
        connection,
        "SET SESSION binlog_format = ROW",
        "INSERT INTO customer (name) SELECT CONCAT('customer ', seq) FROM seq_1_to_500",
        "INSERT INTO orders (customer, amount, note)"
        " SELECT 1 + seq MOD 500, seq / 7, REPEAT('n', seq) FROM seq_1_to_1000",
        "INSERT INTO customer (name) VALUES ('returned') RETURNING id",
        f"INSERT INTO types VALUES {TYPE_ROW}",
        "INSERT INTO types () VALUES ()",
        "UPDATE types SET ti = 5, lt = REPEAT('long', 20000) WHERE id = 1",
        "SET SESSION binlog_row_image = MINIMAL",
        "UPDATE types SET vc = 'minimal', y = 1999 WHERE id = 1",
        "SET SESSION binlog_row_image = FULL",
        "REPLACE INTO parts SELECT seq, seq * seq FROM seq_1_to_300",
        "DELETE FROM parts WHERE id MOD 3 = 0",
        "SET timestamp = 1700000000",  # a replica gives its history rows whole seconds
        "INSERT INTO versioned VALUES (1, 1), (2, 2)",
        "SET timestamp = 1700000001",
        "UPDATE versioned SET v = v + 10",
        "SET timestamp = DEFAULT",
        "INSERT INTO heap SELECT NEXT VALUE FOR numbers FROM seq_1_to_20",
        "DELETE FROM customer WHERE id BETWEEN 400 AND 420",
        "INSERT INTO parts VALUES (1, 1) ON DUPLICATE KEY UPDATE v = 5",
    )


def statement_changes(connection: "Connection[Any]") -> None:
    """Statements with all that must travel with them: insert id, random seed, variables, time."""
    execute(
        connection,
        "SET SESSION binlog_format = STATEMENT",
        "INSERT INTO customer (name) VALUES ('statement'), ('two')",
        "SET @word = 'from a variable', @number = 3.25, @nothing = NULL",
        "INSERT INTO log (word) VALUES (CONCAT(@word, @number, COALESCE(@nothing, '')))",
        "INSERT INTO log (word) VALUES (RAND()), (NOW(6)), (LAST_INSERT_ID())",
        "INSERT INTO log (word) VALUES (CONNECTION_ID())",
        "SET sql_mode = 'ANSI_QUOTES', time_zone = '+03:00', foreign_key_checks = 0",
        "INSERT INTO orders (customer, amount, note) VALUES (1, 1, NOW())",
        "SET sql_mode = DEFAULT, time_zone = DEFAULT, foreign_key_checks = DEFAULT",
        "SET NAMES latin1",
        "INSERT INTO log (word) VALUES (_latin1 X'E4F6FC')",
        "SET NAMES utf8mb4",
        "UPDATE orders SET amount = twice(amount) WHERE id < 10 ORDER BY id LIMIT 5",
        "CALL note('called')",
        "CREATE TEMPORARY TABLE scratch (id INT, word VARCHAR(20))",
        "INSERT INTO scratch VALUES (1, 'one'), (2, 'two')",
        "INSERT INTO log (word) SELECT word FROM scratch ORDER BY id",
        "DROP TEMPORARY TABLE scratch",
    )


def transactions(connection: "Connection[Any]") -> None:
    """Several statements and tables a group, savepoints, mixed engines, rollback of both."""
    for mode in ("ROW", "STATEMENT", "MIXED"):
        execute(
            connection,
            f"SET SESSION binlog_format = {mode}",
            "BEGIN",
            "INSERT INTO customer (name) VALUES ('in a transaction')",
            "INSERT INTO orders (customer, amount) VALUES (2, 20), (3, 30)",
            "SAVEPOINT one",
            "UPDATE orders SET amount = 0",
            "ROLLBACK TO one",
            "SAVEPOINT two",
            "DELETE FROM orders WHERE id = 11",
            "RELEASE SAVEPOINT two",
            "COMMIT",
            "UPDATE customer c JOIN orders o ON o.customer = c.id SET c.city = 'Bonn',"
            " o.note = 'joined' WHERE o.id < 20",
            "DELETE c, o FROM customer c JOIN orders o ON o.customer = c.id WHERE c.id = 50",
            "BEGIN",
            "INSERT INTO orders (customer, amount) VALUES (4, 40)",
            "INSERT INTO log (word) VALUES ('not transactional')",
            "ROLLBACK",
        )


def two_phase_commits(connection: "Connection[Any]") -> None:
    """XA: prepared and committed, prepared and rolled back, in one phase, with others between."""
    execute(
        connection,
        "XA START 'a', 'branch', 7",
        "INSERT INTO orders (customer, amount) VALUES (5, 50)",
        "XA END 'a', 'branch', 7",
        "XA PREPARE 'a', 'branch', 7",
        "XA COMMIT 'a', 'branch', 7",
        "XA START X'00ff'",
        "DELETE FROM orders",
        "XA END X'00ff'",
        "XA PREPARE X'00ff'",
        "XA ROLLBACK X'00ff'",
        "XA START 'single'",
        "INSERT INTO orders (customer, amount) VALUES (6, 60)",
        "XA END 'single'",
        "XA COMMIT 'single' ONE PHASE",
    )


def loaded_files(connection: "Connection[Any]") -> None:
    """LOAD DATA as statement (the file travels in the binlog) and as rows."""
    with tempfile.NamedTemporaryFile("w", suffix=".tsv") as file:
        file.writelines(f"{number}\tline {number}\n" for number in range(1000, 3000))
        file.flush()
        execute(
            connection,
            "CREATE TABLE loaded (id INT PRIMARY KEY, word VARCHAR(20))",
            "CREATE TABLE loaded_rows LIKE loaded",
            "SET SESSION binlog_format = STATEMENT",
            f"LOAD DATA LOCAL INFILE '{Path(file.name)}' INTO TABLE loaded",
            "SET SESSION binlog_format = ROW",
            f"LOAD DATA LOCAL INFILE '{Path(file.name)}' INTO TABLE loaded_rows",
        )


def domains(connection: "Connection[Any]") -> None:
    """Groups of several GTID domains between each other, gaps in the numbers, another server id."""
    execute(
        connection,
        "SET SESSION binlog_format = ROW",
        *(f"CREATE TABLE domain{number} (id INT PRIMARY KEY)" for number in (1, 7, 4294967295)),
    )
    for row in range(30):
        for number in (1, 7, 4294967295):
            execute(
                connection,
                f"SET SESSION gtid_domain_id = {number}",
                f"INSERT INTO domain{number} VALUES ({row})",
            )
    execute(
        connection,
        "SET SESSION gtid_domain_id = 7, SESSION gtid_seq_no = 1000",
        "INSERT INTO domain7 VALUES (1000)",
        "SET SESSION server_id = 77",
        "INSERT INTO domain7 VALUES (1001)",
        "SET SESSION server_id = DEFAULT",
        "INSERT INTO domain7 VALUES (1002)",
        "SET SESSION gtid_domain_id = 0",
    )


def compressed(connection: "Connection[Any]") -> None:
    """Compressed statements and rows (log_bin_compress)."""
    execute(
        connection,
        "SET GLOBAL log_bin_compress = 1, GLOBAL log_bin_compress_min_len = 10",
        "SET SESSION binlog_format = ROW",
        "INSERT INTO orders (customer, amount, note) VALUES (7, 70, REPEAT('squeeze ', 5000))",
        "UPDATE orders SET note = REPEAT('again ', 5000) WHERE amount = 70",
        "DELETE FROM orders WHERE id BETWEEN 30 AND 60",
        "SET SESSION binlog_format = STATEMENT",
        "INSERT INTO log (word) VALUES ('a statement that is long enough to be compressed')",
        "CREATE TABLE squeezed (id INT PRIMARY KEY COMMENT 'a definition long enough')",
        "SET GLOBAL log_bin_compress = 0",
    )


def without_checksums(connection: "Connection[Any]") -> None:
    """Events without checksums: a new format description, and back again."""
    execute(
        connection,
        "SET GLOBAL binlog_checksum = NONE",
        "INSERT INTO customer (name) VALUES ('no checksum')",
        "CREATE TABLE unsummed (id INT PRIMARY KEY)",
        "INSERT INTO unsummed VALUES (1), (2)",
        "SET GLOBAL binlog_checksum = CRC32",
        "INSERT INTO unsummed VALUES (3)",
    )


def large_blob(connection: "Connection[Any]") -> None:
    """One row event above 16 MiB, as statement (small) and as row (large)."""
    execute(
        connection,
        "CREATE TABLE large (id INT PRIMARY KEY, data LONGBLOB)",
        "SET SESSION binlog_format = STATEMENT",
        f"INSERT INTO large VALUES (1, REPEAT('s', {BLOB_BYTES}))",
        "SET SESSION binlog_format = ROW",
        f"INSERT INTO large VALUES (2, REPEAT('r', {BLOB_BYTES}))",
        f"INSERT INTO large VALUES (3, REPEAT('p', {(16 << 20) - 1}))",
        "DELETE FROM large WHERE id = 1",
    )


ASPECTS: tuple[Callable[["Connection[Any]"], None], ...] = (
    definitions,
    row_changes,
    alterations,
    statement_changes,
    transactions,
    two_phase_commits,
    loaded_files,
    domains,
    compressed,
    without_checksums,
    large_blob,
)


def mixed_workload(primary: MariadbServer) -> None:
    """Run every aspect once, in an order in which each finds the tables that it needs."""
    for aspect in ASPECTS:
        database = None if aspect is definitions else "shop"
        with primary.connection(database=database, local_infile=True) as connection:
            aspect(connection)


def parallel_lanes(primary: MariadbServer) -> None:
    """
    Let four writers at a time change the same rows, in each of three domains at once.

    Domains know nothing of one another: each has a database `lane<domain>` of its own.
    """
    for lane in LANES:
        primary.run(
            f"SET SESSION gtid_domain_id = {lane}",
            f"CREATE DATABASE lane{lane}",
            f"CREATE TABLE lane{lane}.t (id INT PRIMARY KEY, v INT, w VARCHAR(20), KEY (v))",
            f"INSERT INTO lane{lane}.t VALUES (0, 0, 'shared')",
        )
    primary.run("SET GLOBAL binlog_commit_wait_count = 4, GLOBAL binlog_commit_wait_usec = 20000")
    with ThreadPoolExecutor(len(LANES) * LANE_WRITERS) as pool:
        list(pool.map(partial(_write_lane, primary), LANES * LANE_WRITERS, count()))
    primary.run("SET GLOBAL binlog_commit_wait_count = 0, GLOBAL binlog_commit_wait_usec = 100000")


def _write_lane(primary: MariadbServer, lane: int, writer: int) -> None:
    with primary.connection(database=f"lane{lane}") as connection:
        execute(connection, f"SET SESSION gtid_domain_id = {lane}")
        for number in range(1, LANE_TRANSACTIONS + 1):
            key = writer * LANE_TRANSACTIONS + number
            execute(
                connection,
                "BEGIN",
                f"INSERT INTO t VALUES ({key}, {number}, 'row {writer}')",
                *(["UPDATE t SET v = v + 1 WHERE id = 0"] if number % 4 == 0 else []),
                f"UPDATE t SET w = 'changed' WHERE id = {key - 1}",
                "COMMIT",
            )


def huge_transaction(primary: MariadbServer) -> None:
    """Commit one transaction of 300 MB: one event group."""
    primary.run(
        "USE shop",
        "CREATE TABLE huge (id INT PRIMARY KEY, data LONGBLOB)",
        "SET SESSION binlog_format = ROW",
        f"INSERT INTO huge SELECT seq, REPEAT(CHAR(65 + seq MOD 26), {HUGE_ROW_BYTES})"
        f" FROM seq_1_to_{HUGE_ROWS}",
    )
