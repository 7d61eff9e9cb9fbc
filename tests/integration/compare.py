"""Whether a replica holds what the primary holds."""

from .mariadb_server import MariadbServer
from .waiting import wait_until

CATCH_UP_SECONDS = 120.0
SYSTEM_SCHEMAS = "('mysql', 'information_schema', 'performance_schema', 'sys')"
STATUS_SHOWN = (
    "Slave_IO_Running",
    "Slave_SQL_Running",
    "Last_IO_Errno",
    "Last_IO_Error",
    "Last_SQL_Errno",
    "Last_SQL_Error",
    "Gtid_IO_Pos",
    "Slave_SQL_Running_State",
)


def gtids(position: str) -> set[str]:
    """Return a GTID position as a set: the order of its domains means nothing."""
    return set(position.split(",")) - {""}


def checksums(server: MariadbServer) -> dict[str, object]:
    """
    Return what every table of the users holds: its CHECKSUM TABLE, or the rows of a sequence.

    Of a versioned table the rows too, less `row_end`: "for ever" is another time in 11.8.
    """
    found: dict[str, object] = {}
    tables = server.rows(
        "SELECT table_schema, table_name, table_type FROM information_schema.tables"
        f" WHERE table_schema NOT IN {SYSTEM_SCHEMAS} AND table_type <> 'VIEW'"
    )
    for schema, table, kind in tables:
        name = f"`{schema}`.`{table}`"
        if kind == "SEQUENCE":
            found[name] = server.rows(f"SELECT * FROM {name}")
        elif kind == "SYSTEM VERSIONED":
            history = f"SELECT *, row_start FROM {name} FOR SYSTEM_TIME ALL"
            found[name] = sorted(server.rows(history))
        else:
            ((_, found[name]),) = server.rows(f"CHECKSUM TABLE {name}")
    return found


def schema_objects(server: MariadbServer) -> list[tuple[object, ...]]:
    """Return the users' views, routines, triggers and events by kind and name."""
    return server.rows(
        "SELECT 'view', table_schema, table_name FROM information_schema.views"
        f" WHERE table_schema NOT IN {SYSTEM_SCHEMAS}"
        " UNION ALL SELECT routine_type, routine_schema, routine_name"
        f" FROM information_schema.routines WHERE routine_schema NOT IN {SYSTEM_SCHEMAS}"
        " UNION ALL SELECT 'trigger', trigger_schema, trigger_name"
        f" FROM information_schema.triggers WHERE trigger_schema NOT IN {SYSTEM_SCHEMAS}"
        " UNION ALL SELECT 'event', event_schema, event_name FROM information_schema.events"
        " ORDER BY 1, 2, 3"
    )


def wait_for_position(
    replica: MariadbServer, position: str, seconds: float = CATCH_UP_SECONDS
) -> None:
    """Wait until *replica* has applied exactly *position*; fail at once if it has stopped."""

    def shown() -> dict[str, object]:
        status = replica.replica_status()
        return {"wanted": position, "has": replica.replica_position()} | {
            name: status.get(name) for name in STATUS_SHOWN
        }

    def reached() -> bool:
        if gtids(replica.replica_position()) == gtids(position):
            return True
        status = replica.replica_status()
        stopped = status["Last_SQL_Errno"] or status["Last_IO_Errno"] in (1236, 1593, 1595)
        assert not stopped, shown()
        return False

    wait_until(reached, seconds, shown)


def rows_of(server: MariadbServer, name: str) -> list[str]:
    """Return the rows of a table in any order, each as the text of its values."""
    return sorted(map(repr, server.rows(f"SELECT * FROM {name}")))


def differences(primary: MariadbServer, replica: MariadbServer) -> dict[str, object]:
    """
    Return what is not equal, by name, as (primary's, replica's).

    Versions may sum up the same rows otherwise, as 11.8.9 does some of all types: where checksums
    of two versions differ the rows tell.
    """
    ours, theirs = checksums(primary), checksums(replica)
    found: dict[str, object] = {
        name: (ours.get(name), theirs.get(name))
        for name in ours.keys() | theirs.keys()
        if ours.get(name) != theirs.get(name)
    }
    if primary.rows("SELECT VERSION()") != replica.rows("SELECT VERSION()"):
        for name in [name for name in found if name in ours and name in theirs]:
            if rows_of(primary, name) == rows_of(replica, name):
                del found[name]
    if schema_objects(primary) != schema_objects(replica):
        found["objects"] = (schema_objects(primary), schema_objects(replica))
    return found


def assert_equal(primary: MariadbServer, replica: MariadbServer) -> None:
    """Fail unless *replica* ends where *primary* does and holds the same in every table."""
    wait_for_position(replica, primary.binlog_position())
    assert differences(primary, replica) == {}, differences(primary, replica)
