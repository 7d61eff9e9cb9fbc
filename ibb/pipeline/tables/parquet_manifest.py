"""
Which Parquet files are a table: one small document, replaced as a whole by each commit.

`_manifest.json` is the table as it is, and `_manifest-N.json` what it was at its version N, for
as long as the files of that are kept. Files that no manifest names are of a commit that was cut
short, or of versions that are kept no more.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from ibb.protocol.errors import SqlError

from .errors import PipelineError
from .place import Place

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .state_folder import StateFolder

NEWEST: Final = "_manifest.json"
FORMAT: Final = 1
DATA_PREFIX: Final = "part-"
OUR_PREFIXES: Final = (DATA_PREFIX, "_manifest-")
KEPT_VERSIONS: Final = 10  # of a table: readers may be at work on the files of any


@dataclass(frozen=True)
class DataFile:
    """A Parquet file of *rows* rows, by its *name* in the table's folder."""

    name: str
    rows: int


@dataclass(frozen=True)
class Manifest:
    """
    One version of a table.

    Args:
        version: 1, 2, ...
        table: its name at the source then.
        schema: its columns, the hidden one first, with all that they are known to be.
        files: whose rows together are the table.
        places: how far it is, for each pipeline that wrote to it.
        made: it is empty, and that only by the group behind its place.
    """

    version: int
    table: str
    schema: pa.Schema
    files: tuple[DataFile, ...]
    places: dict[str, Place] = field(default_factory=dict)
    made: bool = False

    @classmethod
    def load(cls, folder: StateFolder, version: int | None = None) -> Manifest | None:
        """
        Read a table's manifest; None when there is none.

        Args:
            folder: the table's.
            version: which; None: the newest.

        Raises:
            PipelineError: it is damaged, or of another format.
        """
        name = NEWEST if version is None else _name(version)
        value: Any = folder.read(name)
        if value is None:
            return None
        try:
            if value["format"] != FORMAT:
                raise PipelineError(f"{name} is of format {value['format']}, not {FORMAT}")
            return cls(
                int(value["version"]),
                str(value["table"]),
                pa.ipc.read_schema(pa.py_buffer(base64.b64decode(value["arrow_schema"]))),
                tuple(DataFile(str(file["name"]), int(file["rows"])) for file in value["files"]),
                {name: Place.from_json(place) for name, place in value["places"].items()},
                bool(value["made"]),
            )
        except (KeyError, TypeError, ValueError, SqlError, pa.ArrowException) as error:
            raise PipelineError(f"{name} of a Parquet table is damaged: {error!r}") from error

    def publish(self, folder: StateFolder) -> None:
        """Make this the table, whose files are all there: readers see it or what was before."""
        document = {
            "format": FORMAT,
            "version": self.version,
            "table": self.table,
            "columns": {column.name: str(column.type) for column in self.schema},
            "files": [{"name": file.name, "rows": file.rows} for file in self.files],
            "places": {name: place.as_json() for name, place in self.places.items()},
            "made": self.made,
            "arrow_schema": base64.b64encode(self.schema.serialize()).decode(),
        }
        folder.write(_name(self.version), document)
        folder.write(NEWEST, document)

    def kept(self, folder: StateFolder) -> Iterator[Manifest]:
        """Yield this version and those before that are kept, newest first."""
        yield self
        for version in range(self.version - 1, max(self.version - KEPT_VERSIONS, 0), -1):
            found = Manifest.load(folder, version)
            if found is None:
                return
            yield found

    def remove_others(self, folder: StateFolder) -> None:
        """Remove what belongs to no version that is kept."""
        names = {NEWEST}
        for manifest in self.kept(folder):
            names |= {_name(manifest.version), *(file.name for file in manifest.files)}
        ours = (name for name in folder.names() if name.startswith(OUR_PREFIXES))
        folder.remove(name for name in ours if name not in names)


def _name(version: int) -> str:
    return f"_manifest-{version}.json"
