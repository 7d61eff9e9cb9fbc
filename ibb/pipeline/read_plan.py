"""
What a batch read reads: planned on the driver from states and headers, read by executors.

A task says which files, from where to where, and which groups of them count. Executors open the
directory themselves; nothing but the plan goes through the driver.
"""

from __future__ import annotations

from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

from ibb.protocol.errors import FormatError, SqlError
from ibb.protocol.gtid import GtidPosition
from ibb.storage.group_reader import GroupReader
from ibb.storage.group_runs import GroupBlock
from ibb.storage.gtid_search import TooOld
from ibb.storage.position import Position

from .cuts import Cut, cut_at_beginning, cut_behind
from .directories import (
    DirectoryView,
    NamedDirectory,
    check_not_begun_anew,
    named_directories,
    open_for_task,
    open_view,
)
from .errors import OptionError
from .file_ranges import FileRange, cut_into_ranges, within_times
from .group_choice import GroupChoice, chosen_groups
from .options import EARLIEST, LATEST, SourceOptions
from .prepared_groups import PreparedGroups
from .server_plan import plan_server_read

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence

    from ibb.protocol.gtid_event import XaId

    from .event_groups import EventGroup, ReadTask


@dataclass(frozen=True, slots=True)
class FileTask:
    """
    One partition of a directory.

    Attributes:
        path: of the directory.
        part: of its files.
        choice: which groups.
        recovered: not all of it is in the files themselves, some is still in the redo log.
        lsn: of the header of the first file, by which another history is noticed.
        known: a page that is used, so that nobody has to look again how far the newest file is.
    """

    path: str
    part: FileRange
    choice: GroupChoice
    recovered: bool
    lsn: int
    known: tuple[int, int]

    @property
    def place(self) -> str | None:
        """The directory."""
        return self.path

    def open(self) -> FileGroups:
        """
        Open the directory.

        Raises:
            FormatError: it is not the one that the read was planned for.
            DiskError: a file cannot be read.
        """
        return FileGroups(self)


class FileGroups:
    """The groups of a partition of a directory; a context manager."""

    def __init__(self, task: FileTask) -> None:
        self._task = task
        self._pages = open_for_task(task.path, recovered=task.recovered, known=task.known)
        self._prepared = PreparedGroups(self._pages, task.part.end)
        try:
            check_not_begun_anew(self._pages, task.part.start.file_no, task.lsn)
        except BaseException:
            self._pages.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._pages.close()

    def groups(self) -> Generator[EventGroup, None, None]:
        """
        Yield the groups, in order; each must be used before the next is taken.

        Raises:
            FormatError: something is damaged, or is gone since the read was planned.
            DiskError: a file cannot be read.
        """
        for found in self.runs():
            if isinstance(found, GroupBlock):
                yield from map(found.group, range(found.first, found.stop))
            else:
                yield found

    def runs(self) -> Iterator[EventGroup | GroupBlock]:
        """Yield the same, many at a time where that can be."""
        task = self._task
        reached = yield from chosen_groups(self._pages, task.part, task.choice)
        if reached is not None:
            raise FormatError(
                f"{task.path} ends at {reached}, before {task.part.end} which this read was"
                " planned for: its files were purged or begun anew, or are cut"
            )

    def again(self, group: EventGroup) -> EventGroup:
        """Return a group once more, its pieces not taken yet."""
        again = GroupReader(self._pages, group.position).next()
        assert again is not None, "it was read just now"
        return again

    def prepared(self, before: EventGroup, xa_id: XaId) -> EventGroup | None:
        """Return the last group before one that prepared an XA transaction."""
        return self._prepared.last(xa_id, before.position)


def plan_read(options: SourceOptions) -> Sequence[ReadTask]:
    """
    Return the tasks of a batch read.

    Raises:
        OptionError: an option does not fit what is there.
        FormatError, DiskError: a directory cannot be read.
        ServerRefused: a server is not there, or not to be read.
    """
    if options.server is not None:
        return plan_server_read(options)
    tasks: list[FileTask] = []
    for named in named_directories(options.paths):
        view = open_view(named.path)
        try:
            start = _cut(view, options.start, "startingGtid")
            end = _cut(view, options.end, "endingGtid")
            choice = GroupChoice(start, end, named.files, options.domains, *options.times)
            tasks += tasks_between(view, named, choice, options)
        finally:
            view.pages.close()
    return tasks


@contextmanager
def newest_view(options: SourceOptions) -> Iterator[tuple[DirectoryView, Cut]]:
    """
    Look at the last directory that a read has, and at where the read ends in it.

    Raises:
        OptionError: an option does not fit what is there.
        FormatError, DiskError: it cannot be read.
    """
    view = open_view(named_directories(options.paths)[-1].path)
    with closing(view.pages):
        yield view, _cut(view, options.end, "endingGtid")


def tasks_between(
    view: DirectoryView, named: NamedDirectory, choice: GroupChoice, options: SourceOptions
) -> list[FileTask]:
    """
    Return the tasks that read the chosen groups of one directory.

    Raises:
        FormatError, DiskError: it cannot be read.
    """
    pages = view.pages
    whole = FileRange(choice.start.place, choice.end.end)
    if named.files:
        first, last = min(named.files), max(named.files)
        whole = FileRange(
            max(whole.start, Position(first, 0)), min(whole.end, Position(last + 1, 0))
        )
    whole = within_times(pages, whole, options.since, options.before)
    ranges = cut_into_ranges(
        pages, whole, bytes_max=options.partition_bytes_max, count_min=options.partitions_min
    )
    tasks = []
    for part in ranges:
        header = pages.header(part.start.file_no)
        if header is None:
            raise FormatError(f"file {part.start.file_no} of {named.path} is missing")
        recovered = view.in_files is not None and part.end > view.in_files
        known = pages.known_page if recovered else view.known_page_in_files()
        tasks.append(FileTask(named.path, part, choice, recovered, header.lsn, known))
    return [replace(task, choice=_narrowed(task)) for task in tasks]


def groups_of(task: ReadTask) -> Iterator[EventGroup]:
    """
    Yield the groups of a task, in order; each must be used before the next is taken.

    Raises:
        FormatError: something is damaged, or is gone since the read was planned.
        DiskError: a file cannot be read.
        DataLossError: a server has purged groups of it.
        ServerRefused: a server is not there, or not to be read.
    """
    with task.open() as opened:
        yield from opened.groups()


def _narrowed(task: FileTask) -> GroupChoice:
    """Return a task's choice, as it is; files that it cannot meet are left out of what travels."""
    files = task.choice.files
    if files is None:
        return task.choice
    first, last = task.part.start.file_no, task.part.end.file_no
    return replace(task.choice, files=frozenset(no for no in files if first <= no <= last))


def _cut(view: DirectoryView, text: str, option: str) -> Cut:
    if text == EARLIEST:
        return cut_at_beginning(view.pages)
    position = view.state.position() if text == LATEST else GtidPosition.parse(text)
    for gtid in position:
        if option == "endingGtid" and not view.state.contains(gtid):
            raise OptionError(option, f"{gtid} is not in the history, which ends at {view.state}")
    try:
        return cut_behind(view.pages, view.state, position)
    except SqlError as error:
        raise OptionError(option, f"'{position}' does not fit the history: {error}") from error
    except TooOld as error:
        raise OptionError(option, f"{error}, which have been purged; earliest is left") from error
