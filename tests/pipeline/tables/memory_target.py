"""Change tables that are dictionaries, for tests that try thousands of histories."""

import pyarrow as pa

from ibb.pipeline.tables.counted_rows import CountedRows, numbered_keys
from ibb.pipeline.tables.latest_rows import LatestRows
from ibb.pipeline.tables.row_key import DIGEST_CHARACTERS, KEY_COLUMN, row_keys


class CrashError(Exception):
    """The process ends here."""


class MemoryTarget:
    """A table; *crash_in* counts down the commits until one is the last."""

    def __init__(self, name, crash=None):
        self.name = name
        self.uri = f"memory:{name}"
        self.place = None
        self.schema = None
        self.key = []
        self.stored = {}
        self.crash = crash or (lambda: None)

    @property
    def exists(self):
        return self.schema is not None

    def create(self, schema, key, place):
        self.schema, self.key, self.stored = schema, list(key), {}
        self._commit(place)

    def builder(self):
        if self.key:
            return LatestRows(str(self.name), self.schema, self.key)
        return CountedRows(str(self.name), self.schema)

    def merge(self, changes, place):
        self.crash()
        if changes.before is not None:
            keys = {*changes.upserts.column(KEY_COLUMN).to_pylist(), *changes.deletes}
            changes.before.check(keys, keys & self.stored.keys())
        stored = {} if changes.replace else dict(self.stored)
        for key in changes.deletes:
            stored.pop(key, None)
        for row in changes.upserts.to_pylist():
            stored[row.pop(KEY_COLUMN)] = row
        self.stored = stored
        self._commit(place)

    def advance(self, place):
        self._commit(place)

    def add_columns(self, fields, place):
        self.schema = pa.schema([*self.schema, *fields])
        self.stored = {
            key: {name: row.get(name) for name in self.schema.names}
            for key, row in self.stored.items()
        }
        self._commit(place)

    def rewrite(self, schema, key, change, place):
        self.crash()
        rows = change(pa.Table.from_pylist(list(self.stored.values()), self.schema))
        self.schema, self.key = schema, list(key)
        keys = row_keys(rows, key or schema.names)
        if not key:
            keys = numbered_keys(keys, {})
        self.stored = dict(zip(keys, rows.to_pylist(), strict=True))
        self._commit(place)

    def batches(self):
        yield pa.Table.from_pylist(list(self.stored.values()), self.schema)

    def rows_of(self, keys):
        rows = [{KEY_COLUMN: key, **self.stored[key]} for key in keys if key in self.stored]
        return pa.Table.from_pylist(rows, pa.schema([(KEY_COLUMN, pa.string()), *self.schema]))

    def copies_of(self, digests):
        counts = {}
        for key in self.stored:
            digest = key[:DIGEST_CHARACTERS]
            if digest in digests:
                counts[digest] = counts.get(digest, 0) + 1
        return counts

    def rows(self):
        """Return the rows in an order of their own."""
        return sorted((tuple(row.values()) for row in self.stored.values()), key=repr)

    def _commit(self, place):
        self.place = place or self.place
        self.crash()
