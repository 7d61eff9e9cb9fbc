"""
What one huge event group takes of memory, wherever it passes.

Published by a program, read by one, sent by `ibb serve` to a client that only counts, checked by
`ibb verify`, listed by `ibb groups`, and relayed from a primary that never ends one group. Told of
each: seconds, and how far the anonymous resident memory of all its processes rose over what it was
before. That of a command is compared with the same command's on a small directory.
"""

from __future__ import annotations

import argparse
import asyncio
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from ibb.demo.dump_client import DumpClient
from ibb.demo.serve_process import ServeProcess
from ibb.protocol.command import BinlogDump, DumpFlag
from ibb.protocol.event import with_checksum
from ibb.protocol.gtid import Gtid
from ibb.protocol.gtid_event import GtidEvent, GtidFlag
from ibb.storage import Store, StoreOptions

from ..integration.waiting import wait_until
from ..server.relay.fake_primary import HANG, FakePrimary, preamble
from ..storage.events import TIMESTAMP, query, transaction, xid
from .sizes import parse_size
from .watched import Figures, Watch, helping, say_ready

if TYPE_CHECKING:
    from collections.abc import Iterator
    from multiprocessing.connection import Connection

    from ibb.protocol.fields import Buffer

USER, PASSWORD, UPSTREAM_PASSWORD = "repl", "secret", "upstream-pw"
PIECE_BYTES = 1 << 20
SMALL, BIG = Gtid(0, 1, 1), Gtid(0, 1, 2)
RELAY_SECONDS_MAX = 3600.0


class Shape:
    """
    The huge group.

    Args:
        size: about its bytes.
        event: bytes of text in each of its events.
    """

    def __init__(self, size: int, event: int) -> None:
        self.event = query("x" * event)
        self.count = max(size // len(self.event), 1)
        self.end = xid(7)
        self.size = self.count * len(self.event) + len(self.end)

    def pieces(self) -> Iterator[Buffer]:
        """Yield its bytes, a MiB at a time, cut anywhere."""
        many = memoryview(self.event * (PIECE_BYTES // len(self.event) + 1))
        left = self.count * len(self.event)
        while left:
            for at in range(0, min(len(many), left), PIECE_BYTES):
                yield many[at : min(at + PIECE_BYTES, left)]
            left -= min(len(many), left)
        yield self.end

    def on_the_wire(self) -> Iterator[object]:
        """Yield what a primary sends."""
        yield from preamble()
        flags2 = GtidFlag.TRANSACTIONAL
        yield with_checksum(GtidEvent(gtid=BIG, timestamp=TIMESTAMP, flags2=flags2).encode())
        event = with_checksum(self.event)
        for _ in range(self.count):
            yield event
        yield with_checksum(self.end)
        yield HANG


def publish_small(store: Store) -> None:
    """Publish a group as most are."""
    with store.begin() as group:
        group.write(transaction("insert"))
        group.commit(SMALL)


def publish(connection: Connection, directory: Path, options: StoreOptions, shape: Shape) -> None:
    """Be a program that publishes a small group and then the huge one."""
    with Store.open(directory, options) as store:
        publish_small(store)
        say_ready(connection)
        with store.begin() as group:
            for piece in shape.pieces():
                group.write(piece)
            group.commit(BIG)
        connection.send(shape.size)


def read(connection: Connection, directory: Path, options: StoreOptions) -> None:
    """Be a program that reads all groups of its store."""
    with Store.open(directory, options) as store:
        say_ready(connection)
        connection.send(sum(len(piece) for group in store.reader() for piece in group.pieces()))


def receive(connection: Connection, port: int) -> None:
    """Be a client that takes a dump of everything and counts its bytes."""
    client = DumpClient(port, USER, PASSWORD)
    client.query("SET @master_binlog_checksum = 'CRC32'")
    client.query("SET @mariadb_slave_capability = 4")
    client.query("SET @slave_connect_state = ''")
    say_ready(connection)
    client._command(BinlogDump(4, DumpFlag.NON_BLOCK, 5, "").encode())
    total, buffer = 0, bytearray(256 << 10)
    while size := client._socket.recv_into(buffer):
        total += size
    connection.send(total)


def be_primary(connection: Connection, shape: Shape) -> None:
    """Be a primary whose only group is the huge one."""

    async def serve() -> None:
        async with FakePrimary(shape.on_the_wire()) as primary:
            await asyncio.to_thread(say_ready, connection, primary.port)

    asyncio.run(serve())


def seconds_and_memory(*command: str) -> Figures:
    """Run an `ibb` command to its end."""
    process = subprocess.Popen([sys.executable, "-m", "ibb", *command], stdout=subprocess.DEVNULL)
    watch = Watch(process.pid)
    status = process.wait()
    assert status == 0, (command, status)
    return watch.stop()


class Measurement:
    """
    The steps, each with its figures in `figures` and told on standard output.

    Args:
        folder: where to work; it needs room for the group and one file more.
        shape: of the group.
        options: of the stores.
    """

    def __init__(self, folder: Path, shape: Shape, options: StoreOptions) -> None:
        self.figures: dict[str, Figures] = {}
        self._folder = folder
        self._shape = shape
        self._options = options
        self._directory = folder / "store"

    def tell(self, name: str, figures: Figures) -> None:
        self.figures[name] = figures
        print(
            f"{name:<28}{figures.seconds:8.1f} s {self._shape.size / 1e6 / figures.seconds:7.0f}"
            f" MB/s   memory {figures.idle / (1 << 20):6.1f} MiB"
            f" + {figures.over_idle / (1 << 20):5.1f} MiB",
            flush=True,
        )

    def programs(self) -> None:
        """Publish the group with one program, and read it with another."""
        with helping(publish, self._directory, self._options, self._shape) as publisher:
            watch = Watch(publisher.pid)
            publisher.go()
            assert publisher.result() == self._shape.size
            self.tell("program that publishes", watch.stop())
        with helping(read, self._directory, self._options) as reader:
            watch = Watch(reader.pid)
            reader.go()
            assert reader.result() > self._shape.size
            self.tell("program that reads", watch.stop())

    def server(self) -> None:
        """Send the group to a client."""
        serve = self._serve(self._directory, "server").start()
        try:
            with helping(receive, serve.port) as client:
                watches = Watch(serve.pid), Watch(client.pid)
                client.go()
                assert client.result() > self._shape.size
                self.tell("ibb serve, to a client", watches[0].stop())
                self.tell("that client", watches[1].stop())
        finally:
            serve.stop()

    def commands(self) -> None:
        """Check and list the group."""
        small = self._folder / "small"
        with Store.open(small, self._options) as store:
            publish_small(store)
        for name in ("verify", "groups"):
            idle = seconds_and_memory(name, str(small))
            figures = seconds_and_memory(name, str(self._directory))
            self.tell(f"ibb {name}", Figures(figures.seconds, idle.peak, figures.peak))

    def relay(self) -> None:
        """Relay the group."""
        with helping(be_primary, self._shape) as primary:
            serve = self._serve(self._folder / "relay", "relay-process", "--upstream-ssl=off")
            serve.relay_from(primary.ready, password=UPSTREAM_PASSWORD)
            serve.start()
            try:
                watch = Watch(serve.pid)
                self._await_group(serve.port)
                self.tell("ibb serve, as a relay", watch.stop())
            finally:
                serve.stop()

    def _await_group(self, port: int) -> None:
        with DumpClient(port, USER, PASSWORD) as client:
            position = lambda: str(client.query("SELECT @@GLOBAL.gtid_binlog_pos"))  # noqa: E731
            wait_until(lambda: str(BIG) in position(), RELAY_SECONDS_MAX, position)

    def _serve(self, directory: Path, name: str, *arguments: str) -> ServeProcess:
        folder = self._folder / name
        folder.mkdir()
        size = f"--max-binlog-size={self._options.max_binlog_size}"
        return ServeProcess(
            directory, folder, user=USER, password=PASSWORD, arguments=(size, *arguments)
        )


def main(arguments: list[str] | None = None) -> dict[str, Figures]:
    """Measure as the command line says."""
    parser = argparse.ArgumentParser(prog="scripts/measure-big-group", description=__doc__)
    parser.add_argument("--folder", help="where to work; it needs room for the group and a file")
    parser.add_argument("--gib", type=float, default=10.0)
    parser.add_argument("--event", type=parse_size, default="8000", help="bytes of an event")
    parser.add_argument("--file-size", type=parse_size, default="1G")
    given = parser.parse_args(arguments)
    shape = Shape(int(given.gib * (1 << 30)), given.event)
    options = StoreOptions(max_binlog_size=given.file_size)
    print(f"{shape.count:,} events of {len(shape.event):,} bytes", flush=True)
    with tempfile.TemporaryDirectory(prefix="ibb-big-", dir=given.folder) as folder:
        measurement = Measurement(Path(folder), shape, options)
        measurement.programs()
        measurement.server()
        measurement.commands()
        for path in (Path(folder) / "store").iterdir():
            path.unlink()  # room for the relay
        measurement.relay()
    return measurement.figures


if __name__ == "__main__":
    main()
