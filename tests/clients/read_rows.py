"""
A reader of row changes by python-mysql-replication: prints each as a line of JSON.

    python -m tests.clients.read_rows '{"port": 3306, "user": "u", "password": "p", ...}'

What else the argument holds goes to `BinLogStreamReader`. It ends when all is read.
"""

import json
import sys
from datetime import timedelta
from hashlib import sha256

from pymysqlreplication import BinLogStreamReader
from pymysqlreplication.event import MariadbGtidEvent
from pymysqlreplication.row_event import DeleteRowsEvent, RowsEvent, UpdateRowsEvent, WriteRowsEvent

SHOWN_BYTES_MAX = 1000
CHANGES = {WriteRowsEvent: "insert", DeleteRowsEvent: "delete"}


def shown(value: object) -> str | None:
    """Return *value* as SQL writes it."""
    match value:
        case None | str():
            return value
        case bytes() if len(value) > SHOWN_BYTES_MAX:
            return sha256(value).hexdigest()
        case bytes():
            return value.hex()
        case set():
            return ",".join(sorted(value))
        case timedelta():
            return f"{value.total_seconds():f}"
    return str(value)


def main() -> None:
    settings = json.loads(sys.argv[1])
    where = {name: settings.pop(name) for name in ("port", "user", "password")}
    reader = BinLogStreamReader(
        connection_settings={"host": "127.0.0.1", **where}, server_id=4200, **settings
    )
    try:
        for event in reader:
            if isinstance(event, MariadbGtidEvent):
                print(json.dumps({"gtid": event.gtid}))
            elif isinstance(event, RowsEvent):
                for row in event.rows:
                    tell(event, row)
    finally:
        reader.close()


def tell(event: RowsEvent, row: dict[str, dict[str, object]]) -> None:
    """Print the images of one row: an update has two, as go-mysql has it too."""
    line = {"table": f"{event.schema}.{event.table}"}
    if isinstance(event, UpdateRowsEvent):
        images = [row["before_values"], row["after_values"]]
        line["change"] = "update"
    else:
        images = [row["values"]]
        line["change"] = CHANGES[type(event)]
    for image in images:
        print(json.dumps(line | {"row": [shown(value) for value in image.values()]}))


if __name__ == "__main__":
    main()
