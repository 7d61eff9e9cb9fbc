"""Binlog files held open for reading: a bounded number of them, shared by all readers."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TypeVar

from ibb.protocol.errors import FormatError

from .disk import Disk, File
from .errors import BegunAnewError, DiskError
from .file_name import binlog_name
from .healed_reads import HealedReads
from .page import PAGE_SIZE_MAX, PAGE_SIZE_MIN

OPEN_FILES_MAX = 32
TORN_READS_MAX = 5  # of what another program may just be writing
_EXPONENT_AT = 4  # in a file: of the page size, to base 2
Checked = TypeVar("Checked")


class _Handle:
    """An open file, how many reads are under way on it, and whether it is to be closed."""

    __slots__ = ("dropped", "file", "users")

    def __init__(self, file: File) -> None:
        self.file = file
        self.users = 0
        self.dropped = False


class OpenFiles:
    """
    Reads from the files of a directory by number. Safe to use from several threads.

    Args:
        disk: where the directory is.
        path: of the directory.
        healed: counts second reads that helped.
        is_gone: tells whether the files that were there were deleted: from then on those that are
            open are read, but no others, which are of another history.
    """

    def __init__(
        self,
        disk: Disk,
        path: str,
        healed: HealedReads | None = None,
        is_gone: Callable[[], bool] = lambda: False,
    ) -> None:
        self._disk = disk
        self._path = path
        self._healed = healed or HealedReads()
        self._is_gone = is_gone
        self._mutex = threading.Lock()
        self._handles: OrderedDict[int, _Handle] = OrderedDict()  # least recently used first

    def read(self, file_no: int, offset: int, size: int) -> bytes:
        """
        Return up to *size* bytes from byte *offset* of a file, fewer only at its end.

        Raises:
            DiskError: the file is missing or cannot be read.
        """
        handle = self._take(file_no)
        try:
            return handle.file.read_at(offset, size)
        finally:
            self._give_back(handle)

    def read_into(self, file_no: int, offset: int, room: memoryview) -> int:
        """
        Fill *room* from byte *offset* of a file on, less of it only at its end; return how far.

        Raises:
            DiskError: the file is missing or cannot be read.
        """
        handle = self._take(file_no)
        try:
            return handle.file.read_into(offset, room)
        finally:
            self._give_back(handle)

    @contextmanager
    def lent(self, file_no: int) -> Iterator[int]:
        """
        Have a file stay open in a block, which gets its descriptor, or -1 if it has none.

        Raises:
            DiskError: the file is missing.
        """
        handle = self._take(file_no)
        try:
            yield handle.file.descriptor
        finally:
            self._give_back(handle)

    def next_data(self, file_no: int, offset: int) -> int | None:
        """
        Return where a file may have bytes that are not zero, from *offset* on; None: nowhere.

        Raises:
            DiskError: the file is missing or cannot be read.
        """
        handle = self._take(file_no)
        try:
            return handle.file.next_data(offset)
        finally:
            self._give_back(handle)

    def read_page(
        self,
        file_no: int,
        page_no: int,
        size: int,
        check: Callable[[bytes], Checked],
        *,
        is_growing: bool = False,
    ) -> Checked:
        """
        Return what a check makes of a page, which is given a second chance.

        What was read wrongly once may be right on the device, so the second read is from there.

        Args:
            file_no: of the file.
            page_no: of the page.
            size: of every page in bytes; what is read is shorter at the file's end.
            check: raises FormatError when the bytes are not what they should be.
            is_growing: another program may just be writing it, so it gets some more chances.

        Raises:
            FormatError: the check failed twice.
            DiskError: the file is missing, or the page, which it names, cannot be read.
        """

        def read() -> bytes:
            return self.read(file_no, page_no * size, size)

        for _ in range(TORN_READS_MAX if is_growing else 0):
            with suppress(FormatError, DiskError):
                return check(read())
        return self._read_twice(read, file_no, page_no, size, check)

    def read_header(
        self, file_no: int, check: Callable[[bytes], Checked], *, is_growing: bool = False
    ) -> Checked:
        """Return what a check makes of the beginning of a file; otherwise as `read_page`."""
        for _ in range(TORN_READS_MAX if is_growing else 0):
            with suppress(FormatError):
                return check(self.read_start(file_no))
        return self._read_twice(lambda: self.read_start(file_no), file_no, 0, PAGE_SIZE_MAX, check)

    def read_start(self, file_no: int) -> bytes:
        """
        Return the beginning of a file, at least its header page, at most `PAGE_SIZE_MAX` bytes.

        Raises:
            DiskError: the file is missing, or its header page cannot be read.
        """
        size, failed = PAGE_SIZE_MAX, None
        while True:
            try:
                start = self.read(file_no, 0, size)
            except DiskError as error:
                if error.missing or size == PAGE_SIZE_MIN:
                    raise
                size, failed = size // 2, error  # a page behind the header may be at fault
                continue
            if failed is not None and size >> start[_EXPONENT_AT] == 0:
                raise failed
            return start

    def _read_twice(
        self,
        read: Callable[[], bytes],
        file_no: int,
        page_no: int,
        size: int,
        check: Callable[[bytes], Checked],
    ) -> Checked:
        offset = page_no * size
        try:
            data = read()
            try:
                return check(data)
            except FormatError as error:
                wrong = error
            self.forget_cached(file_no, offset, size)
            data = read()
        except DiskError as error:
            raise error.at_page(page_no, offset) from error
        try:
            checked = check(data)
        except FormatError as error:
            error.what += f", read twice at byte {offset} of the file"
            raise
        self._healed.add(wrong)
        return checked

    def forget_cached(self, file_no: int, offset: int, size: int) -> None:
        """
        Drop bytes of a file from the page cache, if the system follows.

        Raises:
            DiskError: the file is missing.
        """
        handle = self._take(file_no)
        try:
            handle.file.forget_cached(offset, size)
        finally:
            self._give_back(handle)

    def size(self, file_no: int) -> int:
        """
        Return a file's length in bytes.

        Raises:
            DiskError: the file is missing.
        """
        handle = self._take(file_no)
        try:
            return handle.file.size()
        finally:
            self._give_back(handle)

    def drop(self, file_no: int) -> None:
        """Close a file if it is open, or when the reads that use it are done."""
        with self._mutex:
            handle = self._handles.pop(file_no, None)
            if handle is not None:
                self._retire(handle)

    def close(self) -> None:
        """Close all files; reading opens them again."""
        with self._mutex:
            while self._handles:
                self._retire(self._handles.popitem()[1])

    def _take(self, file_no: int) -> _Handle:
        with self._mutex:
            handle = self._handles.get(file_no)
            if handle is None:
                handle = _Handle(self._open(f"{self._path}/{binlog_name(file_no)}"))
                self._handles[file_no] = handle
                if len(self._handles) > OPEN_FILES_MAX:
                    self._retire(self._handles.popitem(last=False)[1])
            else:
                self._handles.move_to_end(file_no)
            handle.users += 1
            return handle

    def _open(self, path: str) -> File:
        try:
            file = self._disk.open(path, read_only=True)
        except DiskError as error:
            if self._is_gone():
                raise BegunAnewError(path) from error
            raise
        if self._is_gone():  # asked when it is open: a name that was there before is the old one's
            file.close()
            raise BegunAnewError(path)
        return file

    def _give_back(self, handle: _Handle) -> None:
        with self._mutex:
            handle.users -= 1
            if handle.dropped and not handle.users:
                handle.file.close()

    @staticmethod
    def _retire(handle: _Handle) -> None:
        """Close *handle*, now or with its last user."""
        handle.dropped = True
        if not handle.users:
            handle.file.close()
