"""
A program that uses a server through one driver and tells what it saw, as JSON.

    python -m tests.clients.visit DRIVER < places.json

`places` are what `Place` holds, by role: an administrator, somebody without privileges, and one
for each login method. What comes out holds nothing that differs between two good primaries.
"""

import datetime as dt
import json
import sys
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from .drivers import DRIVERS, METHODS, Answer, Driver, Place, run

ROWS_COMPARED = (
    "SELECT 1, -1, 18446744073709551615, 1.50, 2.5e0, NULL, 'text', x'00ff', TRUE",
    "SELECT 'ä€', 'it''s', 'a\\nb' AS `ü`, ''",
    "SELECT CONNECTION_ID() > 0, CURRENT_USER(), DATABASE(), UNIX_TIMESTAMP() > 1500000000",
    "SELECT @@gtid_binlog_pos, @@autocommit, @@max_allowed_packet > 0, @@sql_mode",
    "SELECT @@GLOBAL.gtid_domain_id AS domain, @@version_comment IS NULL",
    "SELECT @never_set",
    "SET @mine = 'ü', @number = 1.25",
    "SELECT @mine, @number",
    "SHOW VARIABLES LIKE 'gtid_domain_id'",
    "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('binlog_format', 'binlog_row_image')",
    "SHOW GLOBAL VARIABLES LIKE 'binlog_row_metadata'",
    "SHOW VARIABLES LIKE 'there is none'",
    "SHOW WARNINGS",
    "SELECT MASTER_GTID_WAIT('', 1)",
    "SET NAMES utf8mb4",
    "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
    "START TRANSACTION",
    "COMMIT",
    "SET wait_timeout = 1000",
    "DO 1",
)
COLUMNS_COMPARED = (
    "SHOW BINLOG STATUS",
    "SHOW MASTER STATUS",
    "SHOW BINARY LOGS",
    "SHOW BINLOG EVENTS LIMIT 2",
    "SHOW SLAVE HOSTS",
    "SHOW FULL PROCESSLIST",
    "SHOW GLOBAL STATUS LIKE 'Uptime'",
    "SHOW GRANTS",
    "SELECT VERSION(), @@server_id, NOW(), @@hostname",
)
ERRORS_COMPARED = (
    "nonsense",
    "SELECT FROM",
    "SELECT no_such_function()",
    "SELECT @@no_such_variable",
    "SELECT * FROM nowhere.nothing",
    "USE nowhere",
    "KILL 4294967290",
    "PURGE BINARY LOGS TO 'none.000001'",
    "SET GLOBAL server_id = 'word'",
    "SELECT MASTER_GTID_WAIT('no gtid')",
)
REFUSED_WITHOUT_PRIVILEGES = (
    "SHOW BINLOG STATUS",
    "SHOW BINLOG EVENTS",
    "FLUSH BINARY LOGS",
    "PURGE BINARY LOGS BEFORE NOW()",
    "SET GLOBAL server_id = 1",
    "SHOW SLAVE STATUS",
)
LEAP_DAY = dt.datetime(2024, 2, 29, 1, 2, 3, 4)  # noqa: DTZ001 - SQL has no zone
PREPARED: tuple[tuple[str, tuple[object, ...]], ...] = (
    ("SELECT ? AS a, ? AS b, ? AS c, ? AS d", (7, "ä€😀", None, 2.5)),
    ("SELECT ?, ?", (-(2**63), 2**63 - 1)),
    ("SELECT ?", (b"\0bytes",)),
    ("SELECT ?, ?", (LEAP_DAY, LEAP_DAY.date())),
    ("SELECT ?", (Decimal("-1.25"),)),
    ("SELECT @@gtid_binlog_pos, ? + 1", (1,)),
    ("SHOW GLOBAL VARIABLES LIKE 'gtid_domain_id'", ()),
    ("SELECT no_such_column", ()),
    ("nonsense", ()),
)

Report = dict[str, object]


def outcome(act: Callable[..., object], *arguments: object) -> object:
    """Return what *act* does: its value, or its error by class, code and SQLSTATE."""
    try:
        value = act(*arguments)
    except Exception as error:  # noqa: BLE001 - whatever the driver raises is the answer
        code = getattr(error, "errno", None) or next(iter(error.args), None)
        return {"error": [type(error).__name__, str(code), str(getattr(error, "sqlstate", ""))]}
    if isinstance(value, Answer):
        columns = [[name, repr(kind)] for name, kind in value.columns]
        return {"columns": columns, "rows": [repr(tuple(row)) for row in value.rows]}
    return repr(value) if value is not None else "done"


def columns_only(answer: object) -> object:
    """Return *answer* without its rows: they tell of the server's own files and ids."""
    assert isinstance(answer, dict)
    return {name: value for name, value in answer.items() if name != "rows"}


def visit(driver: Driver, places: dict[str, Place]) -> Report:
    """Use the server as an administrator, then as others."""
    admin = places["admin"]
    connection = driver.connect(admin, None)
    report: Report = {}
    for sql in ROWS_COMPARED:
        report[sql] = outcome(run, connection, sql)
    for sql in COLUMNS_COMPARED:
        report[sql] = columns_only(outcome(run, connection, sql))
    for sql in ERRORS_COMPARED:
        report[sql] = outcome(run, connection, sql)
    report["arguments"] = outcome(run, connection, "SELECT %s AS a, %s AS b", ("ä€😀'\\\0", None))
    report["ping"] = outcome(ping, connection)
    if driver.prepares:
        for sql, values in PREPARED:
            report[f"prepared {sql} {values}"] = outcome(prepared, connection, sql, values)
    if driver.reset is not None:
        run(connection, "SET @kept = 1")
        report["reset"] = outcome(driver.reset, connection)
        report["after reset"] = outcome(run, connection, "SELECT @kept")
    report |= killed(driver, connection, admin)
    if driver.pool is not None:
        report["pool"] = repr(driver.pool(admin))
    return report | logins(driver, places)


def ping(connection: Any) -> None:
    """Ask whether the server is there; what a driver returns for yes differs."""
    connection.ping()


def prepared(connection: Any, sql: str, values: tuple[object, ...]) -> Answer:
    """Execute a prepared statement twice, as a program that keeps it does."""
    cursor = connection.cursor(prepared=True)
    try:
        for _ in range(2):
            cursor.execute(sql, values)
            columns = [(column[0], "") for column in cursor.description]
            answer = Answer(columns, list(cursor.fetchall()))
        return answer
    finally:
        cursor.close()


def killed(driver: Driver, connection: Any, admin: Place) -> Report:
    """Let another connection kill this one, and go on."""
    report: Report = {}
    ((number,),) = run(connection, "SELECT CONNECTION_ID()").rows
    other = driver.connect(admin, None)
    report["kill"] = outcome(run, other, f"KILL {number}")
    other.close()
    lost = outcome(run, connection, "SELECT 1")
    assert isinstance(lost, dict)
    report["lost"] = lost["error"][0]
    if driver.reconnect is not None:
        driver.reconnect(connection)
        report["reconnected"] = outcome(run, connection, "SELECT 1")
        connection.close()
    return report


def logins(driver: Driver, places: dict[str, Place]) -> Report:
    """Log in by each method, with TLS and without, with a wrong password, and without rights."""
    report: Report = {}
    who = "SELECT SUBSTRING_INDEX(USER(), '@', 1)"
    for method in METHODS:
        for tls in (None, True, False):
            report[f"login {method} tls={tls}"] = outcome(
                one_answer, driver, places[method], tls, who
            )
        wrong = places[method]._replace(password="wrong")
        report[f"wrong {method}"] = outcome(one_answer, driver, wrong, None, who)
    shown = "SHOW STATUS LIKE 'Ssl_version'"
    for tls in (None, True, False):
        report[f"tls={tls}"] = outcome(one_answer, driver, places["admin"], tls, shown)
    for sql in REFUSED_WITHOUT_PRIVILEGES:
        report[f"refused {sql}"] = outcome(one_answer, driver, places["nobody"], None, sql)
    return report


def one_answer(driver: Driver, place: Place, tls: bool | None, sql: str) -> Answer:
    connection = driver.connect(place, tls)
    try:
        return run(connection, sql)
    finally:
        connection.close()


def main() -> None:
    places = {role: Place(*values) for role, values in json.load(sys.stdin).items()}
    json.dump(visit(DRIVERS[sys.argv[1]], places), sys.stdout)


if __name__ == "__main__":
    main()
