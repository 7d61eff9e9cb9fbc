"""A file of the administrator's, replaced as a whole; its owner, its mode and links to it stay."""

from __future__ import annotations

import fcntl
import os
import stat
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from ibb.server.config import ConfigError
from ibb.storage.os_disk import OsDisk

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def locked_folder(path: str) -> Iterator[None]:
    """
    Keep others who ask for this, too, from changing the file at *path*: they wait.

    Raises:
        ConfigError: the folder cannot be locked, as some in networks.
        OSError: there is no such folder.
    """
    folder = _followed(path).parent
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        except OSError as error:
            raise ConfigError(
                f"cannot lock {folder}: {error.strerror} (keep the file on a local file system)"
            ) from error
        yield
    finally:
        os.close(descriptor)


def replace_file(path: str, text: str) -> None:
    """
    Let the file at *path* hold *text*, durably when this returns.

    One that is new is its owner's alone. That is who runs this, but for root, who makes it for the
    owner of the folder.

    Raises:
        ConfigError: the owner cannot be kept; the old file is untouched.
        OSError: the file could not be written; the old one is untouched.
        DiskError: it was, but not durably.
    """
    target = _followed(path)
    prefix = f".{target.name}."
    with tempfile.NamedTemporaryFile(  # made with mode 0600
        "w", dir=target.parent, prefix=prefix, delete=False, encoding="utf-8"
    ) as file:
        temporary = Path(file.name)
        try:
            file.write(text)
            file.flush()
            _hand_over(file.fileno(), target)
            os.fsync(file.fileno())
            temporary.replace(target)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
    OsDisk().sync_dir(str(target.parent))


def _followed(path: str) -> Path:
    return Path(os.path.realpath(path))


def _hand_over(descriptor: int, target: Path) -> None:
    """Give a new file the owner and the mode that the old one has."""
    if target.exists():
        old = target.stat()
        try:
            os.fchown(descriptor, old.st_uid, old.st_gid)
        except PermissionError as error:
            raise ConfigError(
                f"cannot keep the owner of {target}: do this as its owner, or as root"
            ) from error
        os.fchmod(descriptor, stat.S_IMODE(old.st_mode))
    elif os.geteuid() == 0:
        folder = target.parent.stat()
        os.fchown(descriptor, folder.st_uid, folder.st_gid)
