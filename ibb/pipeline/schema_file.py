"""
What a JSON file says of tables: names, signs, character sets, for binlogs that leave them out.

    {"shop.orders": {"columns": [{"name": "id", "type": "bigint(20) unsigned"},
                                 {"name": "note", "type": "text", "charset": "utf8mb4"}],
                     "key": ["id"]}}

type is as SHOW CREATE TABLE has it. Primaries say all this by themselves with
binlog_row_metadata=FULL; what a table map says is believed first.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from ibb.protocol.rows.table_schema import ColumnSchema, TableSchema

from .change_rows import TableSchemas
from .errors import OptionError

SCHEMA_FILE_BYTES_MAX: Final = 64 << 20


def read_schema_file(path: str) -> TableSchemas:
    """
    Read such a file; without a path nothing is known.

    Raises:
        OptionError: there is none, or it says something else.
    """
    if not path:
        return TableSchemas({})
    try:
        if Path(path).stat().st_size > SCHEMA_FILE_BYTES_MAX:
            raise OptionError("schemaFile", f"{path} has more than {SCHEMA_FILE_BYTES_MAX} bytes")
        content: dict[str, Any] = json.loads(Path(path).read_text(encoding="utf-8"))
        return TableSchemas({_name(name): _schema(said) for name, said in content.items()})
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise OptionError("schemaFile", f"{path} cannot be used: {error}") from error


def _name(name: str) -> tuple[str, str]:
    database, dot, table = name.partition(".")
    if not dot:
        raise ValueError(f"'{name}' is not database.table")
    return database, table


def _schema(said: dict[str, Any]) -> TableSchema:
    columns = (
        ColumnSchema(str(column["name"]), str(column["type"]), column.get("charset"))
        for column in said["columns"]
    )
    return TableSchema(tuple(columns), tuple(said.get("key", ())))
