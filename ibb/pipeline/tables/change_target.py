"""What a change table must be able to do, wherever it is kept."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

from .row_merge import RowMerge

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    import pyarrow as pa

    from ibb.protocol.gtid import GtidPosition

    from .place import Place
    from .row_changes import GroupRun
    from .row_merge import MergeBuilder
    from .shape import Reshape

Merge = TypeVar("Merge")


class Version(NamedTuple):
    """
    A version of a table.

    Attributes:
        number: among the versions of the table.
        position: how far it is.
        name: of the table then.
        made: it is empty, and that only by the group behind *position*.
    """

    number: int
    position: GtidPosition
    name: str
    made: bool


class ChangeTarget(Protocol[Merge]):
    """
    A table and how far it is; each method that takes a place is one commit, or none.

    It takes changes as what its own builder makes of them: a *Merge*.
    """

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
        """Its columns, without those that are ours."""

    @property
    def key(self) -> list[str]:
        """Names of the key's columns; empty: the table has no key."""

    def create(self, schema: pa.Schema, key: Sequence[str], place: Place) -> None:
        """Make the table empty, in place of what may be there."""

    def builder(self) -> MergeBuilder[Merge]:
        """Return what takes changes for `merge`."""

    def merge(self, changes: Merge, place: Place) -> None:
        """Bring the table to *place*, of which *changes* are the difference."""

    def advance(self, place: Place) -> None:
        """Store *place* without a change."""

    def reshape(self, reshape: Reshape, at: GroupRun, place: Place, /) -> None:
        """Bring columns, key and rows into the shape that the group *at* gives them."""

    def batches(self) -> Iterator[pa.Table]:
        """Yield the rows that there are now, without columns of ours, some at a time."""

    def rows_of(self, keys: Collection[str]) -> pa.Table:
        """Return the rows with these *keys*, in any order, with the hidden column."""

    def copies_of(self, digests: Collection[str]) -> dict[str, int]:
        """Return how many rows there are of each content; contents without any are left out."""


class KeptTable(ChangeTarget[RowMerge], Protocol):
    """A table of rows as they are now, and its versions that are left."""

    @property
    def rows(self) -> int:
        """How many rows there are."""

    def schema_at(self, version: int | None) -> pa.Schema:
        """Return the columns of a version, without those that are ours; None: the last."""

    def key_at(self, version: int | None) -> list[str]:
        """Return the names of a version's key columns; None: the last."""

    def versions(self) -> Iterator[Version]:
        """Yield the versions that are left, newest first."""

    def fill(
        self, schema: pa.Schema, key: Sequence[str], rows: Iterable[pa.Table], place: Place
    ) -> None:
        """Put a table of *rows* in place of what may be there, in one commit."""

    def batches(self, version: int | None = None) -> Iterator[pa.Table]:
        """Yield the rows of a version, without columns of ours, some at a time."""
