"""Option schemaFile: a JSON file of what the binlog does not say of tables (`TableSchemas`)."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from ibb.protocol.rows.table_schema import SchemaError

from .errors import OptionError
from .table_schemas import TableSchemas

SCHEMA_FILE_BYTES_MAX: Final = 64 << 20


def read_schema_file(path: str) -> TableSchemas:
    """
    Read such a file; without a path nothing is known.

    Raises:
        OptionError: there is none, or it says something else.
    """
    if not path:
        return TableSchemas()
    try:
        if Path(path).stat().st_size > SCHEMA_FILE_BYTES_MAX:
            raise OptionError("schemaFile", f"{path} has more than {SCHEMA_FILE_BYTES_MAX} bytes")
        return TableSchemas.from_json(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError, SchemaError) as error:
        raise OptionError("schemaFile", f"{path} cannot be used: {error}") from error
