"""What a change table must be able to do, wherever it is kept."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

    import pyarrow as pa

    from .place import Place
    from .row_merge import MergeBuilder, RowMerge


class ChangeTarget(Protocol):
    """A table and how far it is; each method that takes a place is one commit, or none."""

    name: str
    uri: str

    @property
    def exists(self) -> bool:
        """Whether there is a table."""

    @property
    def place(self) -> Place | None:
        """How far the table is; None: this pipeline has never written to it."""

    @property
    def schema(self) -> pa.Schema:
        """Its columns, without the hidden one."""

    @property
    def key(self) -> list[str]:
        """Names of the key's columns; empty: the table has no key."""

    def create(self, schema: pa.Schema, key: Sequence[str], place: Place) -> None:
        """Make the table empty, in place of what may be there."""

    def builder(self) -> MergeBuilder:
        """Return what takes changes for `merge`."""

    def merge(self, changes: RowMerge, place: Place) -> None:
        """Bring the table to *place*, of which *changes* are the difference."""

    def advance(self, place: Place) -> None:
        """Store *place* without a change."""

    def add_columns(self, fields: Iterable[pa.Field], place: Place) -> None:
        """Add nullable columns at the end; rows that are there have null."""

    def rewrite(
        self,
        schema: pa.Schema,
        key: Sequence[str],
        change: Callable[[pa.Table], pa.Table],
        place: Place,
    ) -> None:
        """Write all rows anew in another shape."""

    def batches(self) -> Iterator[pa.Table]:
        """Yield the rows, without the hidden column, in pieces of a bounded number."""

    def rows_of(self, keys: Collection[str]) -> pa.Table:
        """Return the rows with these *keys*, in any order, with the hidden column."""

    def copies_of(self, digests: Collection[str]) -> dict[str, int]:
        """Return how many rows there are of each content; contents without any are left out."""
