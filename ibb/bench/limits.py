"""What this machine can do at best, measured in the same run: memory, loopback, the disk."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ibb.protocol.fast_checksum import crc32, crc32c
from ibb.server.connections.socket_options import send_unpaced

from .commits import bare_syncs

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from ibb.protocol.fields import Buffer

COPY_BYTES: Final = 64 << 20
SEND_BYTES: Final = 256 << 10
STORE_BYTES: Final = 1 << 20  # between two syncs of the log
LOG_BYTES: Final = 64 << 20  # it is written round and round
FILE_BYTES: Final = 2 << 30  # at most, of the file that is written beside it
CHILD_SECONDS_MAX: Final = 60.0
# Receives until the end; what the loopback gives to who does nothing with it.
_SINK: Final = """
import socket, sys
with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as s:
    b = bytearray(262144)
    while s.recv_into(b):
        pass
"""


@dataclass(frozen=True)
class Limits:
    """
    The physical limits.

    Attributes:
        copy_gb: GB/s of memcpy, one core, of blocks that no cache holds.
        loopback_gb: GB/s from one process to another that only receives.
        loopback_processor: processor seconds of the sender for a GB.
        serve_processor: the same of one that reads it from a file in the page cache before, checks
            it as pages are checked, and computes the checksums of its events: no server of `.ibb`
            files can do with less.
        syncs: writes with fdatasync, a second.
        store_gb: GB/s written into a log, synced each MiB, and then into a new file: no store that
            has a redo log can do with less.
        store_processor: processor seconds of who writes for a GB of that.
    """

    copy_gb: float
    loopback_gb: float
    loopback_processor: float
    serve_processor: float
    syncs: float
    store_gb: float
    store_processor: float


def measure_limits(folder: Path, seconds: float) -> Limits:
    """
    Measure each limit for *seconds*.

    Args:
        folder: on the disk that is measured.
        seconds: of each.
    """
    data = bytes(SEND_BYTES)
    loopback, processor = _sent(lambda _: data, seconds)
    served = _served(folder / "served", seconds)
    path = folder / "syncs"
    try:
        syncs = bare_syncs(path, seconds)
    finally:
        path.unlink(missing_ok=True)
    return Limits(_copy(seconds), loopback, processor, served, syncs, *_store(folder, seconds))


def _copy(seconds: float) -> float:
    source, target = bytes(COPY_BYTES), memoryview(bytearray(COPY_BYTES))
    target[:] = source  # so that its pages are there; a bytearray would make one copy more
    done, begun = 0, time.perf_counter()
    while time.perf_counter() - begun < seconds:
        target[:] = source
        done += COPY_BYTES
    return done / (time.perf_counter() - begun) / 1e9


def _store(folder: Path, seconds: float) -> tuple[float, float]:
    paths = folder / "log", folder / "file"
    log, file = (os.open(path, os.O_RDWR | os.O_CREAT, 0o600) for path in paths)
    try:
        data, done = os.urandom(STORE_BYTES), 0
        for offset in range(0, LOG_BYTES, STORE_BYTES):
            os.pwrite(log, data, offset)
        os.fsync(log)
        os.posix_fallocate(file, 0, FILE_BYTES)
        used, begun = time.process_time(), time.perf_counter()
        while time.perf_counter() - begun < seconds and done < FILE_BYTES:
            os.pwrite(log, data, done % LOG_BYTES)
            os.fdatasync(log)
            os.pwrite(file, data, done)
            done += STORE_BYTES
        took, used = time.perf_counter() - begun, time.process_time() - used
    finally:
        for descriptor, path in zip((log, file), paths, strict=True):
            os.close(descriptor)
            path.unlink()
    return done / took / 1e9, used / done * 1e9


def _served(path: Path, seconds: float) -> float:
    """Return the processor seconds of who reads, checks and sends a GB of a cached file."""
    room, checked = memoryview(bytearray(SEND_BYTES)), bytes(SEND_BYTES)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        for offset in range(0, COPY_BYTES, SEND_BYTES):
            os.pwrite(descriptor, room, offset)

        def piece(done: int) -> memoryview:
            os.preadv(descriptor, [room], done % COPY_BYTES)
            crc32c(checked)  # as much, and as near: kernels take no other memory from here
            crc32(checked)
            return room

        return _sent(piece, seconds)[1]
    finally:
        os.close(descriptor)
        path.unlink()


def _sent(piece: Callable[[int], Buffer], seconds: float) -> tuple[float, float]:
    """
    Send for some seconds to a process that only receives.

    Args:
        piece: returns the next bytes, given how many were sent.
        seconds: for how long.

    Returns:
        GB/s, and processor seconds for a GB.
    """
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        listener.settimeout(CHILD_SECONDS_MAX)
        child = subprocess.Popen([sys.executable, "-c", _SINK, str(port)])
        connection, _ = listener.accept()
        send_unpaced(connection)
    try:
        with connection:
            connection.settimeout(CHILD_SECONDS_MAX)
            done = 0
            used, begun = time.process_time(), time.perf_counter()
            while time.perf_counter() - begun < seconds:
                data = piece(done)
                connection.sendall(data)
                done += len(data)
            took, used = time.perf_counter() - begun, time.process_time() - used
    finally:
        child.kill()
        child.wait()
    return done / took / 1e9, used / done * 1e9
