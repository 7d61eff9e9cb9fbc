"""Which groups of those that are read count: one by one, or a block of them at a time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ibb.storage.group_runs import GroupBlock, GroupRuns

from .cuts import just_behind

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from ibb.storage.directory import BinlogDirectory
    from ibb.storage.group_reader import StoredGroup
    from ibb.storage.position import Position

    from .cuts import Cut
    from .file_ranges import FileRange


@dataclass(frozen=True, slots=True)
class GroupChoice:
    """
    Which groups count of those that are read.

    Attributes:
        start: those behind this cut.
        end: those before this one.
        files: whose commit record begins in these files; None: in any.
        domains: of these GTID domains; empty: of all.
        since: seconds since 1970, or None.
        before: seconds since 1970, or None.
    """

    start: Cut
    end: Cut
    files: frozenset[int] | None = None
    domains: frozenset[int] = frozenset()
    since: float | None = None
    before: float | None = None

    def wants(self, group: StoredGroup) -> bool:
        """Tell whether a group counts."""
        gtid = group.gtid
        return gtid is not None and self.wants_at(gtid.domain, group.position, group.timestamp)

    def parts(self, block: GroupBlock) -> Iterator[GroupBlock]:
        """Yield those groups of a block that count, as many as follow one another at a time."""
        if self._wants_all(block):
            yield block
            return
        copied, first = block.copied, block.first
        for number in range(block.first, block.stop):
            domain, time = copied.domains[number], copied.times[number]
            if not self.wants_at(domain, block.position(number), time):
                if number > first:
                    yield block.part(first, number)
                first = number + 1
        if block.stop > first:
            yield block.part(first, block.stop)

    def _wants_all(self, block: GroupBlock) -> bool:
        """Tell whether all groups of a block count, without a look at each."""
        copied, groups = block.copied, slice(block.first, block.stop)
        first, last = block.position(block.first), block.position(block.stop - 1)
        times = (0, 0)
        if self.since is not None or self.before is not None:
            times = min(copied.times[groups]), max(copied.times[groups])
        return all(
            self.wants_at(domain, position, time)
            for domain in set(copied.domains[groups])
            for position in (first, last)
            for time in times
        )

    def wants_at(self, domain: int, position: Position, timestamp: int) -> bool:
        """Tell whether a group of a domain at a place and time counts."""
        if self.start.is_before(domain, position) or not self.end.is_before(domain, position):
            return False
        if self.files is not None and position.file_no not in self.files:
            return False
        if self.domains and domain not in self.domains:
            return False
        if self.since is not None and timestamp < self.since:
            return False
        return self.before is None or timestamp < self.before


def chosen_groups(
    pages: BinlogDirectory, part: FileRange, choice: GroupChoice
) -> Generator[StoredGroup | GroupBlock, None, Position | None]:
    """
    Yield the groups in a part of the files that count, many at a time where that can be.

    Args:
        pages: the files.
        part: of them.
        choice: which groups; each is used before the next is taken.

    Returns:
        Where the files end, if they do so before the part; else None.

    Raises:
        FormatError: the pages that have to be read are damaged.
        DiskError: a file cannot be read.
    """
    start, end = part
    runs = GroupRuns(pages, start)
    while (found := runs.next()) is not None:
        if isinstance(found, GroupBlock):
            block, last = found.before(end), found.position(found.stop - 1)
            is_cut = len(block) < len(found)
            if len(block):
                yield from choice.parts(block)
        else:
            last, is_cut = found.position, found.position >= end
            if not is_cut and choice.wants(found):
                yield found
        if is_cut or just_behind(last) == end:
            return None
    return runs.position if runs.position < end else None
