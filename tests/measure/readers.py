"""
Many readers at once, with and without one beside them that does not read.

Each run serves the same history to *n* readers, which only count bytes. Told of each: seconds of
the slowest reader, processor seconds of the server for a delivered GB, and its anonymous memory.
"""

from __future__ import annotations

import argparse
import os
import selectors
import socket
import statistics
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from ibb.demo.dump_client import DumpClient
from ibb.protocol.command import BinlogDump, DumpFlag
from ibb.protocol.gtid import Gtid
from ibb.storage.options import StoreOptions
from ibb.storage.store import Store

from ..integration.conftest import Rig, rig_in
from ..integration.ibb_process import IbbProcess, MemoryWatch
from ..integration.mariadb_server import PASSWORD, USER
from ..integration.waiting import wait_until
from ..storage.events import query, xid

EVENT_BYTES = 8000
GROUP_BYTES = 64 << 10
SMALL_BUFFER = 4096  # bytes that the system takes for who does not read
SECONDS_MAX = 300.0
DROPPED = "dump_dropped"


class Figures(NamedTuple):
    """What one run gave."""

    slowest_seconds: float
    processor_seconds_per_gb: float
    megabytes_per_second: float
    memory_megabytes: float


class Reading(DumpClient):
    """
    A connection whose dump is read by whoever wants to.

    Args:
        port: of the server.
        buffer: bytes that the system may take for it; 0 leaves that to the system.
    """

    def __init__(self, port: int, buffer: int = 0) -> None:
        super().__init__(port, USER, PASSWORD)
        if buffer:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
        self.query("SET @master_binlog_checksum = 'CRC32'")
        self.query("SET @mariadb_slave_capability = 4")
        self.query("SET @slave_connect_state = ''")

    def begin(self) -> socket.socket:
        """Ask for all there is, to be ended by the server; return the socket."""
        flags = DumpFlag.SEND_ANNOTATE_ROWS | DumpFlag.NON_BLOCK
        self._command(BinlogDump(4, flags, 0, "").encode())
        return self._socket


def make_history(folder: Path, megabytes: int) -> None:
    """Publish groups of rows-sized events."""
    events = query("x" * EVENT_BYTES) * (GROUP_BYTES // EVENT_BYTES) + xid(7)
    with Store.open(folder, StoreOptions(server_id=90)) as store:
        for seq in range(1, megabytes * (1 << 20) // GROUP_BYTES + 1):
            with store.begin() as group:
                group.write(events)
                group.commit(Gtid(0, 90, seq), wait=False)
        store.sync()


def processor_seconds(pid: int) -> float:
    """Return what a process has taken so far, all its threads together."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def read_all(port: int, readers: int) -> tuple[list[int], float]:
    """Have *readers* read everything; return the bytes of each, and the seconds of the slowest."""
    clients = [Reading(port) for _ in range(readers)]
    counts = dict.fromkeys(range(readers), 0)
    buffer = bytearray(256 << 10)
    begun = time.monotonic()
    with selectors.DefaultSelector() as selector:
        for number, client in enumerate(clients):
            selector.register(client.begin(), selectors.EVENT_READ, number)
        while selector.get_map():
            for key, _ in selector.select(SECONDS_MAX):
                size = key.fileobj.recv_into(buffer)
                counts[key.data] += size
                if not size:
                    selector.unregister(key.fileobj)
    seconds = time.monotonic() - begun
    for client in clients:
        client.close()
    return list(counts.values()), seconds


def run(ibb: IbbProcess, readers: int, *, stalled: bool) -> Figures:
    """Serve everybody; fail if a reader got less than another, or the stalled one stays."""
    before, dropped = processor_seconds(ibb.pid), ibb.log.read_text().count(DROPPED)
    beside = Reading(ibb.port, SMALL_BUFFER) if stalled else None
    with MemoryWatch(ibb) as memory:
        if beside is not None:
            beside.begin()
        counts, seconds = read_all(ibb.port, readers)
    used = processor_seconds(ibb.pid) - before
    assert len(set(counts)) == 1, counts
    if beside is not None:
        wait_until(lambda: ibb.log.read_text().count(DROPPED) > dropped, 60.0, ibb.log_tail)
        beside.close()
    gigabytes = sum(counts) / 1e9
    return Figures(
        seconds, used / gigabytes, gigabytes * 1000 / seconds, (memory.peak - memory.before) / 1e6
    )


def told(name: str, runs: list[Figures]) -> str:
    """Return the medians of some runs, with the least and the most."""
    words = []
    for field, values in zip(Figures._fields, zip(*runs, strict=True), strict=True):
        span = f" ({min(values):.3g} to {max(values):.3g})" if len(runs) > 1 else ""
        words.append(f"{field.replace('_', ' ')} {statistics.median(values):.3g}{span}")
    return f"{name}: {', '.join(words)}"


def measure(rig: Rig, folder: Path, settings: argparse.Namespace) -> None:
    """Run in turn with and without the stalled reader; print each run, then the medians."""
    make_history(folder / "store", settings.megabytes)
    ibb = rig.ibb(f"--net-write-timeout={settings.timeout}", directory=folder / "store").start()
    read_all(ibb.port, 1)  # so that the first run finds the history in memory too
    kinds: dict[str, list[Figures]] = {"without": [], "with": []}
    for number in range(settings.runs):
        for name, runs in kinds.items():
            runs.append(run(ibb, settings.readers, stalled=name == "with"))
            print(told(f"run {number + 1} {name} a stalled reader", runs[-1:]), flush=True)
    for name, runs in kinds.items():
        print(told(f"{name} a stalled reader", runs), flush=True)
    ibb.stop()


def main() -> None:
    """Take the command line and measure."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--readers", type=int, default=64)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--megabytes", type=int, default=32, help="of history (default 32)")
    parser.add_argument("--timeout", type=float, default=2.0, help="seconds, net_write_timeout")
    settings = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ibb-") as name, rig_in(Path(name)) as rig:
        measure(rig, Path(name), settings)


if __name__ == "__main__":
    main()
