"""What this machine can do at best, measured in the same run: memory, loopback, the disk."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from .commits import bare_syncs

if TYPE_CHECKING:
    from pathlib import Path

COPY_BYTES: Final = 64 << 20
SEND_BYTES: Final = 256 << 10
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
        syncs: writes with fdatasync, a second.
    """

    copy_gb: float
    loopback_gb: float
    loopback_processor: float
    syncs: float


def measure_limits(folder: Path, seconds: float) -> Limits:
    """
    Measure each limit for *seconds*.

    Args:
        folder: on the disk that is measured.
        seconds: of each.
    """
    loopback, processor = _loopback(seconds)
    path = folder / "syncs"
    try:
        syncs = bare_syncs(path, seconds)
    finally:
        path.unlink(missing_ok=True)
    return Limits(_copy(seconds), loopback, processor, syncs)


def _copy(seconds: float) -> float:
    source, target = bytes(COPY_BYTES), bytearray(COPY_BYTES)
    target[:] = source  # so that its pages are there
    done, begun = 0, time.perf_counter()
    while time.perf_counter() - begun < seconds:
        target[:] = source
        done += COPY_BYTES
    return done / (time.perf_counter() - begun) / 1e9


def _loopback(seconds: float) -> tuple[float, float]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        listener.settimeout(CHILD_SECONDS_MAX)
        child = subprocess.Popen([sys.executable, "-c", _SINK, str(port)])
        connection, _ = listener.accept()
    try:
        with connection:
            connection.settimeout(CHILD_SECONDS_MAX)
            data, done = bytes(SEND_BYTES), 0
            used, begun = time.process_time(), time.perf_counter()
            while time.perf_counter() - begun < seconds:
                connection.sendall(data)
                done += SEND_BYTES
            took, used = time.perf_counter() - begun, time.process_time() - used
    finally:
        child.kill()
        child.wait()
    return done / took / 1e9, used / done * 1e9
