"""A program that publishes into its own store and serves it: `Server(store)` beside the test."""

import asyncio
import threading
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from ibb.protocol.gtid import Gtid
from ibb.protocol.gtid_event import GtidEvent, GtidFlag
from ibb.server.config import Config
from ibb.server.login.accounts import AccountBook, make_account
from ibb.server.server import Server
from ibb.storage.store import Store

from ..storage.events import TIMESTAMP, query, xid
from ..tiny import SMALL
from .mariadb_server import PASSWORD, USER

SERVER_ID = 90
START_SECONDS = 20.0


class Publisher:
    """One store, served from a thread; made by `publishing`."""

    def __init__(self, store: Store, server: Server) -> None:
        self.store = store
        self.server = server
        self.newest = 0
        self.timestamp = TIMESTAMP  # of groups, in seconds since 1970
        self._mutex = threading.Lock()  # numbers are given in the order of commits

    @property
    def port(self) -> int:
        return self.server.port()

    def define(self, sql: str) -> Gtid:
        """Commit a statement that is a group of its own."""
        return self.commit(GtidFlag.STANDALONE | GtidFlag.DDL, query(sql, server=SERVER_ID))

    def change(self, sql: str) -> Gtid:
        """Commit a transaction of one statement."""
        events = query(sql, server=SERVER_ID) + xid(self.newest, server=SERVER_ID)
        return self.commit(GtidFlag.TRANSACTIONAL, events)

    def commit(self, flags2: GtidFlag, events: bytes) -> Gtid:
        """Commit a group of these events behind its GTID event; from any thread."""
        with self._mutex, self.store.begin() as group:
            gtid = Gtid(0, SERVER_ID, self.newest + 1)
            group.write(
                GtidEvent(gtid=gtid, timestamp=self.timestamp, flags2=flags2).encode() + events
            )
            position = group.commit(gtid, wait=False)
            self.newest += 1
        self.store.wait_for(position)
        return gtid


@contextmanager
def publishing(folder: Path, **settings: object):
    """Lend a publisher with a store in *folder*, which both end with the block."""
    options = replace(SMALL, server_id=SERVER_ID)
    accounts = AccountBook([make_account(USER, "%", PASSWORD, ["REPLICATION SLAVE"])])
    with Store.open(folder, options) as store:
        config = Config(listen="127.0.0.1:0", server_id=SERVER_ID, **settings)
        server = Server(store, config=config, accounts=accounts)
        loop = asyncio.new_event_loop()
        thread = threading.Thread(target=loop.run_forever)
        thread.start()

        def call(coroutine):
            return asyncio.run_coroutine_threadsafe(coroutine, loop).result(START_SECONDS)

        try:
            call(server.start())
            try:
                yield Publisher(store, server)
            finally:
                call(server.stop())
        finally:
            loop.call_soon_threadsafe(loop.stop)
            thread.join()
            loop.close()
