"""Small JSON documents beside the tables: replaced as a whole or not at all."""

from __future__ import annotations

import fcntl
import json
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import fsspec

from ibb.storage.os_disk import OsDisk

from .errors import PipelineError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

DOCUMENT_BYTES_MAX: Final = 64 << 20


class StateFolder:
    """
    The documents in the folder *uri*.

    Args:
        uri: a folder, or an URL that fsspec knows.
        storage: options of the object store, as fsspec names them.
    """

    def __init__(self, uri: str, storage: Mapping[str, str] | None = None) -> None:
        self._files, self._root = fsspec.core.url_to_fs(uri, **dict(storage or {}))
        self._is_local = "file" in self._files.protocol

    def read(self, name: str) -> Any:
        """
        Return the document *name*, or None when there is none.

        Raises:
            PipelineError: it is not JSON, or too long.
        """
        path = f"{self._root}/{name}"
        try:
            with self._files.open(path, "rb") as file:
                data = file.read(DOCUMENT_BYTES_MAX + 1)
        except FileNotFoundError:
            return None
        try:
            if len(data) > DOCUMENT_BYTES_MAX:
                raise PipelineError(f"{path} is longer than {DOCUMENT_BYTES_MAX} bytes")
            return json.loads(data)
        except ValueError as error:
            raise PipelineError(f"{path} is damaged: {error}") from error

    def write(self, name: str, value: object) -> None:
        """
        Put *value* in place of the document *name*.

        A crash leaves the old one or the new, and the new one once this has returned.
        """
        path, data = f"{self._root}/{name}", json.dumps(value, indent=1).encode()
        if not self._is_local:
            self._files.pipe_file(path, data)  # an object appears whole
            return
        os.makedirs(self._root, exist_ok=True)  # noqa: PTH103 - a text that fsspec gave
        with open(f"{path}.new", "wb") as file:  # noqa: PTH123 - as above
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(f"{path}.new", path)  # noqa: PTH105 - as above
        OsDisk().sync_dir(self._root)

    @contextmanager
    def new_file(self, name: str) -> Iterator[Any]:
        """Lend the file *name* to be written, in place of what may be there; synced in the end."""
        path = f"{self._root}/{name}"
        if not self._is_local:
            with self._files.open(path, "wb") as file:
                yield file
            return
        os.makedirs(self._root, exist_ok=True)  # noqa: PTH103 - as above
        with open(path, "wb") as file:  # noqa: PTH123 - as above
            yield file
            file.flush()
            os.fsync(file.fileno())

    @contextmanager
    def opened(self, name: str) -> Iterator[Any]:
        """Lend what Arrow reads the file *name* from: on this machine its path."""
        path = f"{self._root}/{name}"
        if self._is_local:
            yield path
            return
        with self._files.open(path, "rb") as file:
            yield file

    def remove(self, names: Iterable[str]) -> None:
        """Remove the files of these names."""
        for name in names:
            self._files.rm_file(f"{self._root}/{name}")

    def names(self) -> list[str]:
        """Return the names of all that is in the folder."""
        self._files.invalidate_cache(self._root)
        return [str(path).rpartition("/")[2] for path in self._files.ls(self._root, detail=False)]

    @contextmanager
    def lock(self) -> Iterator[None]:
        """
        Keep others from running the same pipeline; object stores leave that to Delta's commits.

        Raises:
            PipelineError: another process has it.
        """
        if not self._is_local:
            yield
            return
        os.makedirs(self._root, exist_ok=True)  # noqa: PTH103 - as above
        with open(f"{self._root}/lock", "wb") as file:  # noqa: PTH123 - as above
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise PipelineError(f"{self._root} is in use: the pipeline runs already") from error
            yield

    def is_there(self, place: str) -> bool:
        """Whether there is a folder or an object at *place*, an absolute name."""
        there: bool = self._files.exists(place)
        return there

    def in_folder(self, place: str) -> list[str]:
        """Return the absolute names of what is in *place*; none where folders cannot be moved."""
        if not self._is_local or not os.path.isdir(place):  # noqa: PTH112 - as above
            return []
        return [f"{place}/{name}" for name in sorted(os.listdir(place))]  # noqa: PTH208 - as above

    def move(self, source: str, target: str) -> bool:
        """
        Move the folder *source* to *target*, two absolute names; False: there is none.

        Raises:
            PipelineError: there is one of that name, or this is no local folder: object stores
                cannot move a table at once.
        """
        if not self._is_local:
            if not self.is_there(source):
                return False
            raise PipelineError(f"{source} cannot be moved to {target} in an object store at once")
        if not os.path.isdir(source):  # noqa: PTH112 - as above
            return False
        if os.path.exists(target):  # noqa: PTH110 - as above
            raise PipelineError(f"{source} cannot be moved to {target}: that is there already")
        old, new = map(os.path.dirname, (source, target))
        os.makedirs(new, exist_ok=True)  # noqa: PTH103 - as above
        os.rename(source, target)  # noqa: PTH104 - as above
        for folder in (new, old):
            OsDisk().sync_dir(folder)
        return True
