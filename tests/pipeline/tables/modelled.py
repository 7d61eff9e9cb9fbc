"""Histories made by hand, with what the source's tables hold behind each of their groups."""

from contextlib import contextmanager
from copy import deepcopy
from typing import NamedTuple

import pyarrow as pa

from ibb.pipeline.tables.mariadb_source import SourceTable
from ibb.pipeline.tables.place import Place
from ibb.pipeline.tables.row_changes import Changed, Op, Statement, TableName, Undecoded
from ibb.pipeline.tables.shape import column_field

from .changes import Stream, changes

KINDS = {"id": "int", "n": "int", "m": "int", "name": "varchar(9)"}


class Table(NamedTuple):
    """A table of the source."""

    columns: tuple[str, ...]
    key: tuple[str, ...]
    rows: list

    @property
    def schema(self):
        return pa.schema([column_field(name, KINDS[name]) for name in self.columns])

    @property
    def plain(self):
        """The columns as the stream tells of them."""
        return pa.schema([(field.name, field.type) for field in self.schema])


def table(columns, key="", rows=()):
    return Table(tuple(columns.split()), tuple(key.split()), list(rows))


def named(text):
    return TableName(*text.split("."))


class Source:
    """
    A source that writes groups; each is seen when `seen` is raised behind it.

    Attributes:
        models: the tables behind so many groups.
        letters: (group, reason) of what cannot be decoded.
        batch_groups: where batches end that are read.
        cuts_statements: whether they end behind a statement too, as those of a binlog do.
        view_at: behind so many groups the server is, when it is asked for a snapshot.
    """

    def __init__(self):
        self.stream = Stream()
        self.models = [{}]
        self.letters = []
        self.batch_groups = 100
        self.cuts_statements = True
        self._renames = []  # groups before each change of a name, the old name, and the new one
        self.seen = 0
        self.view_at = 0

    def sql(self, text, database="shop", **tables):
        """Log a statement; *tables* of `shop` are so behind it, None: there is none any more."""
        self._follow(tables)
        self._add(lambda gtid, time: [Statement(gtid, time, database, text)])

    def rename(self, *pairs, if_there=False):
        """Log that tables of `shop`, or *if_there* those that are, get other names in turn."""
        after = dict(self.models[-1])
        for old, new in pairs:
            old_name, new_name = TableName("shop", old), TableName("shop", new)
            if if_there and old_name not in after:
                continue
            assert new_name not in after
            after[new_name] = after.pop(old_name)
            self._renames.append((len(self.models), old_name, new_name))
        self.models.append(after)
        text = (
            "RENAME TABLE "
            + "IF EXISTS " * if_there
            + ", ".join(f"{old} TO {new}" for old, new in pairs)
        )
        self._add(lambda gtid, time: [Statement(gtid, time, "shop", text)])

    def name_then(self, name, count):
        """Return the name that the table *name* of now had behind so many groups."""
        for at, old, new in reversed(self._renames):
            if at > count and name == new:
                name = old
        return name

    def create_select(self, text, name, made):
        """Log a table and its first rows in one group."""
        self._follow({name: made})
        full = TableName("shop", name)
        ops = [(Op.INSERT, None, row) for row in made.rows]

        def steps(gtid, time):
            rows = _described(changes(gtid, *ops, schema=made.plain, time=time), made)
            return [Statement(gtid, time, "shop", text), Changed(full, rows)]

        self._add(steps)

    def insert(self, name, *rows, domain=0):
        self._change(name, [(Op.INSERT, None, row) for row in rows], domain)

    def update(self, name, old, new, domain=0):
        self._change(name, [(Op.UPDATE, old, new)], domain)

    def delete(self, name, *rows, domain=0):
        self._change(name, [(Op.DELETE, row, None) for row in rows], domain)

    def undecoded(self, *names):
        """Log rows of these tables that nobody can decode, in one group."""

        def steps(gtid, time):
            self.letters += [(str(gtid), name) for name in names]
            return [Undecoded(gtid, time, named(name), name, b"\1") for name in names]

        self.models.append(self.models[-1])
        self._add(steps)

    def read(self, _config, ledger, _schema_of, until=None):
        """Yield batches as the reader of the binlog cuts them: a statement ends one."""
        first, end = self.stream.behind(ledger.place.position), self.seen
        if until is not None:
            gtids = [gtid for gtid, _, _ in self.stream.groups]
            end = max(gtids.index(gtid) for gtid in until) + 1
        for last in range(first + 1, end + 1):
            steps = self.stream.groups[last - 1][2]
            ends = self.cuts_statements and any(isinstance(step, Statement) for step in steps)
            if ends or last - first >= self.batch_groups or last == end:
                yield self.stream.batch(first, last)
                first = last

    @contextmanager
    def view(self, _config, wants, *, goes_on):
        """See the server's tables as they are now."""
        view = _View(self.models[self.view_at], self.stream.place(self.view_at))
        yield view, view.tables(wants)

    def _change(self, name, ops, domain):
        before = self.models[-1][named(name)]
        rows = list(before.rows)
        for op, old, new in ops:
            if op != Op.INSERT:
                rows.remove(old)
            if op != Op.DELETE:
                rows.append(new)
        self.models.append({**self.models[-1], named(name): before._replace(rows=rows)})

        def steps(gtid, time):
            made = changes(gtid, *ops, schema=before.plain, time=time)
            return [Changed(named(name), _described(made, before))]

        self._add(steps, domain)

    def _follow(self, tables):
        after = dict(self.models[-1])
        for name, made in tables.items():
            full = TableName("shop", name)
            after.pop(full, None)
            if made is not None:
                after[full] = made
        self.models.append(after)

    def _add(self, steps, domain=0):
        self.stream.add(domain, steps)
        self.seen = self.view_at = len(self.stream.groups)


class _View:
    def __init__(self, model, position):
        self.place = Place(position, 1)
        self._model = deepcopy(model)

    def tables(self, wants):
        return [
            SourceTable(name, made.schema, made.key)
            for name, made in self._model.items()
            if wants(name)
        ]

    def keep_name(self, _table, _others):
        """See no other table of that name: models do not change meanwhile."""

    def check_unique(self, _table, _key):
        """See nothing that is there twice: the rows of models are not."""

    def ranges(self, _table, _rows):
        return [""]

    def read(self, wanted, _worker, _condition):
        yield pa.Table.from_pylist(self._model[wanted.name].rows, wanted.schema)


def _described(made, about):
    return type(made)(made.ops, made.groups, made.before, made.after, about.plain, about.key)
