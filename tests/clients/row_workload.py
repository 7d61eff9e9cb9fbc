"""
Row changes of every type, for readers of rows; statements would tell them nothing.

`KEPT` holds at its end what the changes before have left: who applies the rows that a reader
decodes must come to the same. Its types are those that every reader shows in one way.
"""

from ..integration.mariadb_server import MariadbServer
from ..integration.workload import TYPE_COLUMNS, TYPE_ROW

KEPT = "clients.kept"
BLOB_BYTES = (16 << 20) + 1000  # a row event that needs two packets


def row_workload(primary: MariadbServer) -> None:
    """Run it once; the primary writes rows, with all metadata."""
    primary.run(
        "CREATE DATABASE clients CHARACTER SET utf8mb4",
        "USE clients",
        "CREATE TABLE kept (id INT PRIMARY KEY, small TINYINT, large BIGINT UNSIGNED,"
        " amount DECIMAL(12,3), word VARCHAR(60), latin VARCHAR(20) CHARACTER SET latin1,"
        " body TEXT, day DATE, moment DATETIME, flag BOOLEAN)",
        f"CREATE TABLE every_type ({TYPE_COLUMNS.replace(', vcc VARCHAR(200) COMPRESSED', '')})",
        "CREATE TABLE big (id INT PRIMARY KEY, data LONGBLOB)",
        "INSERT INTO kept SELECT seq, seq MOD 100, seq * 1000000007, seq / 7, CONCAT('wörd ', seq),"
        " 'Ärger', REPEAT('€', seq), '2000-02-29' + INTERVAL seq DAY,"
        " '2024-02-29 23:59:58' + INTERVAL seq HOUR, seq MOD 2 FROM seq_1_to_300",
        "INSERT INTO kept (id) VALUES (1000)",
        "INSERT INTO kept (id, large, word) VALUES (1001, 18446744073709551615, '😀 \\0 end')",
        f"INSERT INTO every_type VALUES {TYPE_ROW.replace(COMPRESSED_VALUE, '')}",
        "INSERT INTO every_type () VALUES ()",
        "UPDATE every_type SET ti = 5, lt = REPEAT('long', 20000) WHERE id = 1",
        "DELETE FROM every_type WHERE id = 2",
        "BEGIN",
        "UPDATE kept SET word = NULL, amount = -amount WHERE id MOD 10 = 0",
        "SAVEPOINT one",
        "DELETE FROM kept",
        "ROLLBACK TO one",
        "DELETE FROM kept WHERE id BETWEEN 50 AND 60",
        "COMMIT",
        "UPDATE kept SET id = id + 5000 WHERE id < 10",
        "ALTER TABLE kept ADD COLUMN added INT DEFAULT 5",
        "INSERT INTO kept (id, added) VALUES (2000, NULL), (2001, 7)",
        f"INSERT INTO big VALUES (1, REPEAT('b', {BLOB_BYTES}))",
        "DELETE FROM big",
        "SET gtid_domain_id = 7",
        "INSERT INTO kept (id, word) VALUES (3000, 'of another domain')",
        "SET gtid_domain_id = 0",
        "XA START 'x'",
        "INSERT INTO kept (id, word) VALUES (3001, 'prepared')",
        "XA END 'x'",
        "XA PREPARE 'x'",
        "XA COMMIT 'x'",
        "INSERT INTO kept (id, word) VALUES (9999, 'last')",
    )


COMPRESSED_VALUE = ", REPEAT('compress me ', 15)"  # of a column type that no reader knows
