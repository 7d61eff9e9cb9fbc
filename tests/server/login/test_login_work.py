"""Unknown users and wrong passwords take the same packets and the same work by every method."""

import sys
import threading
from collections import Counter
from pathlib import Path

import pytest

from ibb.protocol.handshake import AuthSwitchRequest
from ibb.protocol.reply import is_err
from ibb.server.config import Config
from ibb.server.login.accounts import Account, AccountBook, make_account
from ibb.server.login.auth_methods import METHODS
from ibb.server.server import Server

from ..raw_client import RawClient

ANSWERS = {  # of wrong passwords, packet by packet
    "mysql_native_password": [b"w" * 20],
    "ed25519": [b"w" * 64],
    "parsec": [b"", b"w" * 96],
    "caching_sha2_password": [b"w" * 32, b"wrong\0"],
}


class Work:
    """Counts calls of the functions that check proofs, in every thread."""

    def __enter__(self):
        self.calls = Counter()
        self._threads = threading.getprofile()
        threading.setprofile(self._count)
        sys.setprofile(self._count)
        return self

    def __exit__(self, *_):
        sys.setprofile(None)
        threading.setprofile(self._threads)

    def _count(self, frame, event, argument):
        path = Path(frame.f_code.co_filename)
        if path.parent.name == "protocol" and path.stem.endswith(("_password", "_crypt")):
            name = argument.__name__ if event.startswith("c_") else frame.f_code.co_name
            self.calls[path.stem, event, name] += 1


async def fail_to_log_in(server, user, method):
    """Return what the server said, by kind and length, without what is random in it."""
    said = []
    async with await RawClient.connect(server.address) as client:
        await client.read_greeting()
        await client.start_tls()
        said.append(await client.log_in(user, "unused", plugin="other"))
        for answer in ANSWERS[method]:
            await client.send(answer, client.seq + 1)
            said.append(await client.packet())
        assert is_err(said[-1])
        assert await client.packet() is None
    switch = AuthSwitchRequest.parse(said[0])
    return [switch.plugin, *((packet[:2], len(packet)) for packet in said)]


DEAR = (  # made with more rounds than ours
    ("parsec", f"P3:{'S' * 24}:{'K' * 42}A"),
    ("caching_sha2_password", f"$A$007${'s' * 20}{'h' * 43}"),
)


@pytest.mark.parametrize(
    "way",
    [
        *((name, METHODS[name].make("right", b"s" * METHODS[name].salt_bytes)) for name in ANSWERS),
        *DEAR,
    ],
    ids=[*ANSWERS, *(f"dear {name}" for name, _ in DEAR)],
)
async def test_an_unknown_user_costs_what_a_wrong_password_costs(store, way):
    method, _ = way
    with Work() as work:  # before the server's threads begin
        book = AccountBook([Account("known", "%", (way,))])
        server = Server(store, config=Config(listen="127.0.0.1:0"), accounts=book)
        await server.start()
        costs = []
        for user in ("known", "guess", "known", "guess"):
            work.calls.clear()
            said = await fail_to_log_in(server, user, method)
            costs.append((said, Counter(work.calls)))
        await server.stop()
    assert costs[0][1].total() > 3
    assert costs[2] == costs[3]
    assert costs[2][0] == costs[1][0]
    assert costs[0] == costs[1] == costs[2]


async def test_an_unknown_user_seems_to_have_the_same_methods_each_time(store):
    accounts = (make_account(name, "%", "x", methods=[name]) for name in ANSWERS)
    server = Server(store, config=Config(listen="127.0.0.1:0"), accounts=AccountBook(accounts))
    await server.start()
    plugins = {}
    for _ in range(2):
        for number in range(40):
            user = f"guess{number}"
            async with await RawClient.connect(server.address) as client:
                switch = AuthSwitchRequest.parse(await client.log_in(user, "x", plugin="other"))
                assert plugins.setdefault(user, switch.plugin) == switch.plugin
    assert len(set(plugins.values())) > 1
    await server.stop()
