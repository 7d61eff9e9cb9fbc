"""
The demonstration without MariaDB, in one process.

A thread publishes made-up groups into a `Store`, a `Server` serves it, and the built-in client
reads along; publisher and client each hash every group.
"""

import asyncio
import hashlib
import tempfile
import threading
import time

import uvloop
from rich.console import Console

from ibb.protocol.gtid import Gtid
from ibb.server.config import Config
from ibb.server.server import Server
from ibb.storage.options import StoreOptions
from ibb.storage.store import Store

from .dump_client import DumpClient
from .live_view import LiveView
from .made_up_groups import made_up_groups

POLL_SECONDS = 0.2
STALL_SECONDS_MAX = 60.0
GROUPS_A_SYNC = 100
BINLOG_BYTES_MAX = 64 << 20  # two files of this size are allocated at once
CLIENT_ID = 1000

Hashes = dict[Gtid, str]


class Reader(threading.Thread):
    """Reads *count* groups from the server on loopback *port* and keeps their hashes."""

    def __init__(self, port: int, account: tuple[str, str], count: int) -> None:
        super().__init__(daemon=True)  # it may wait for groups that never come
        self.hashes: Hashes = {}
        self._port = port
        self._account = account
        self._count = count

    def run(self) -> None:
        """Read; what the master refuses ends the thread with a traceback."""
        with DumpClient(self._port, *self._account) as client:
            for group in client.groups("", server_id=CLIENT_ID, wait=True):
                self.hashes[group.gtid] = group.sha256
                if len(self.hashes) == self._count:
                    break


def publish(store: Store, count: int, hashes: Hashes) -> None:
    """Commit *count* groups to *store*, durable every `GROUPS_A_SYNC`, and note their hashes."""
    for number, (gtid, events) in enumerate(made_up_groups(count), start=1):
        with store.begin() as group:
            group.write(events)
            group.commit(gtid, wait=number % GROUPS_A_SYNC == 0)
        hashes[gtid] = hashlib.sha256(events).hexdigest()
    store.sync()


async def watch(reader: Reader, view: LiveView, published: Hashes) -> None:
    """Show how far both sides are until *reader* has ended, or has not moved for too long."""
    moved, before = time.monotonic(), 0
    while reader.is_alive() and time.monotonic() - moved < STALL_SECONDS_MAX:
        view.show({"store": len(published), "client": len(reader.hashes)})
        if len(reader.hashes) != before:
            moved, before = time.monotonic(), len(reader.hashes)
        await asyncio.sleep(POLL_SECONDS)
    view.show({"store": len(published), "client": len(reader.hashes)}, last=True)


async def serve_and_read(store: Store, console: Console, count: int) -> bool:
    """Serve *store* while it fills and is read; return whether both sides have the same."""
    server = Server(store, config=Config(listen="127.0.0.1:0"))
    await server.start()
    try:
        assert server.made_up is not None
        published: Hashes = {}
        reader = Reader(server.address[1], server.made_up, count)
        reader.start()
        with LiveView(console, ("store", "client"), count) as view:
            publishing = asyncio.to_thread(publish, store, count, published)
            await asyncio.gather(publishing, watch(reader, view, published))
    finally:
        await server.stop()
    return reader.hashes == published


def run_built_in(console: Console, groups: int) -> bool:
    """
    Run the demonstration that needs no MariaDB and return whether store and client are equal.

    Args:
        console: for the live view and the result.
        groups: event groups to publish.
    """
    with tempfile.TemporaryDirectory(prefix="ibb-demo-") as folder:
        console.print(f"publishing into a store in {folder}, reading by dump", highlight=False)
        with Store.open(folder, StoreOptions(max_binlog_size=BINLOG_BYTES_MAX)) as store:
            equal = uvloop.run(serve_and_read(store, console, groups))
        console.print(f"SHA-256 of {groups} groups compared", highlight=False)
        return equal
