"""What ALTER TABLE makes of rows where its session's modes decide, at a real server."""

import pymysql
import pytest

pytestmark = [pytest.mark.live, pytest.mark.xdist_group("change_tables")]

STRICT = "SET sql_mode = 'STRICT_TRANS_TABLES'"
LAX = "SET sql_mode = ''"
ORACLE = "SET sql_mode = 'ORACLE'"
PADS = "SET sql_mode = 'PAD_CHAR_TO_FULL_LENGTH'"
IMPLICIT = "SET explicit_defaults_for_timestamp = 0"
COLUMNS = (
    "id INT PRIMARY KEY, s VARCHAR(9) CHARACTER SET utf8mb4, t TINYTEXT CHARACTER SET utf8mb4,"
    " n TIMESTAMP NULL, k CHAR(4) DEFAULT 'a'"
)
NAMED = "(id, s, t, n)"
ROW = "(1, 'é', 'é', '2024-02-29 12:00:00')"
CASES = {  # settings, row, what is altered: whether it is followed
    (STRICT, ROW, "MODIFY s VARCHAR(20)"): True,
    (STRICT, ROW, "MODIFY s VARCHAR(20) CHARACTER SET latin1"): True,
    (STRICT, ROW, "MODIFY t TINYTEXT NOT NULL"): True,
    (LAX, ROW, "MODIFY s VARCHAR(20)"): False,
    (LAX, "(1, 'ж', '', NULL)", "MODIFY s VARCHAR(20)"): False,
    (LAX, "(1, 'ж', '', NULL)", "MODIFY s VARCHAR(20) CHARACTER SET latin1"): False,
    (LAX, "(1, 'e', '', NULL)", "MODIFY s VARCHAR(20)"): True,
    (LAX, "(1, 'e', NULL, NULL)", "MODIFY t TINYTEXT"): True,
    (IMPLICIT, ROW, "ADD c TIMESTAMP"): False,
    (IMPLICIT, ROW, "ADD c TIMESTAMP NOT NULL"): False,
    (IMPLICIT, ROW, "ADD c TIMESTAMP NULL"): True,
    (IMPLICIT, ROW, "MODIFY n TIMESTAMP"): True,
    (IMPLICIT, "(1, '', '', NULL)", "MODIFY n TIMESTAMP"): False,
    ("SET explicit_defaults_for_timestamp = 1", ROW, "ADD c TIMESTAMP"): True,
    (ORACLE, ROW, "ADD c DATE DEFAULT '2024-01-31', ADD d NUMBER DEFAULT 1.5"): True,
    (ORACLE, ROW, "ADD c NUMBER(5) DEFAULT 2, ADD d BLOB"): True,
    ("SET sql_mode = 'REAL_AS_FLOAT'", ROW, "ADD c REAL DEFAULT 0.1"): True,
    ("SET sql_mode = 'MAXDB'", ROW, "ADD c TIMESTAMP NULL DEFAULT '2024-01-31'"): True,
    ("SET sql_mode = 'EMPTY_STRING_IS_NULL'", ROW, "ADD c VARCHAR(9) DEFAULT ''"): True,
    ("SET sql_mode = 'EMPTY_STRING_IS_NULL'", ROW, "ADD c VARCHAR(9) NOT NULL"): True,
    (LAX, ROW, "MODIFY k VARCHAR(9)"): True,
    (PADS, ROW, "MODIFY k VARCHAR(9)"): False,
    (PADS, ROW, "MODIFY k TEXT"): False,
    (PADS, ROW, "MODIFY k CHAR(9)"): True,
}  # fmt: skip


def test_it_is_followed_where_the_modes_leave_no_doubt(topology, tmp_path):
    primary = topology.primary
    primary.run("CREATE DATABASE modes DEFAULT CHARACTER SET latin1")
    configs = {}
    for number, case in enumerate(CASES):
        settings, row, clauses = case
        name = f"modes.t{number}"
        primary.run(f"CREATE TABLE {name} ({COLUMNS})", f"INSERT INTO {name} {NAMED} VALUES {row}")
        configs[case] = topology.config(tmp_path / str(number), include=(name,))
        topology.run(configs[case])
        later = f"INSERT INTO {name} (id, s, t) VALUES (2, 'x', 'y')"
        primary.run(settings, f"ALTER TABLE {name} {clauses}", later)
    followed = {case: topology.is_followed(config, case) for case, config in configs.items()}
    assert followed == CASES


def test_a_strict_server_loses_no_letter_itself(topology):
    topology.primary.run(
        "CREATE DATABASE letters DEFAULT CHARACTER SET latin1",
        f"CREATE TABLE letters.t ({COLUMNS})",
        f"INSERT INTO letters.t {NAMED} VALUES (1, 'ж', 'ж', NULL)",
    )
    for clauses in ("MODIFY s VARCHAR(20)", "MODIFY t TINYTEXT CHARACTER SET ascii"):
        with pytest.raises(pymysql.err.DataError, match="Incorrect string value"):
            topology.primary.run(STRICT, f"ALTER TABLE letters.t {clauses}")
