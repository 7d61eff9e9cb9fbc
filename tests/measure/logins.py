"""
Whether the time of a refused login tells a user who exists from one who does not.

Both are refused again and again, a pair at a time in random order, by each method and cost. What
counts is how long the server takes in all, from a packet of the client to the next of its own. How
likely a difference is by chance comes from a permutation test: the times of a pair change owners at
random, so that what else the machine did then counts for both.
"""

from __future__ import annotations

import argparse
import random
import socket
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ibb.demo.serve_process import ServeProcess
from ibb.protocol import caching_sha2_password as sha2
from ibb.protocol import ed25519_password as ed25519
from ibb.protocol import native_password as native
from ibb.protocol import parsec_password as parsec
from ibb.protocol.authentication import Channel
from ibb.protocol.capabilities import CLIENT_CAPABILITIES
from ibb.protocol.handshake import AuthMoreData, AuthSwitchRequest, Greeting, HandshakeResponse
from ibb.protocol.packet import frame
from ibb.protocol.reply import is_err, parse_err
from ibb.protocol.sha256_crypt import sha256_crypt
from ibb.server.login.accounts import Account, AccountBook
from ibb.server.login.auth_methods import METHODS
from ibb.server.login.decoys import outline

if TYPE_CHECKING:
    from collections.abc import Sequence

CLIENTS = {each.PLUGIN_NAME: each.client_exchange for each in (native, ed25519, parsec, sha2)}
PRIVATE = Channel(private=True, trusted=True)
ACCESS_DENIED = 1045
QUANTILE = 0.1  # what others do on the machine makes the slower ones slow
SALT = "abcdefghijklmnopqrst"
DEAR_ROUNDS = 20_000
WARM_UP = 5


class Comparison(NamedTuple):
    """One method: quantiles in seconds, and how likely such a difference is by chance."""

    known: float
    unknown: float
    chance: float


def ways() -> dict[str, tuple[str, str]]:
    """Return what is kept of a password, by method and cost."""
    dear = f"$A${DEAR_ROUNDS // 1000:03X}${SALT}"
    dear += sha256_crypt(b"right", SALT.encode(), DEAR_ROUNDS).decode()
    found = {
        name: (name, method.make("right", SALT.encode()[: method.salt_bytes]))
        for name, method in METHODS.items()
        if method.plugin
    }
    return found | {f"caching_sha2_password, {DEAR_ROUNDS} rounds": (sha2.PLUGIN_NAME, dear)}


def read_packet(link: socket.socket) -> tuple[bytes, int]:
    """Return a payload and its sequence id."""
    head = link.recv(4, socket.MSG_WAITALL)
    return link.recv(int.from_bytes(head[:3], "little"), socket.MSG_WAITALL), head[3]


def refuse(path: str, user: str) -> float:
    """Fail to log in; return the seconds that the server took to answer."""
    with socket.socket(socket.AF_UNIX) as link:
        link.connect(path)
        answer, seq = read_packet(link)
        server = Greeting.parse(answer).capabilities
        # Of a plugin that nobody has, so that the server asks for what the user seems to have.
        response = HandshakeResponse(
            CLIENT_CAPABILITIES, 1 << 24, 45, user, b"", auth_plugin="none"
        )
        packet = response.encode(server)
        spent = 0.0
        while True:
            framed = frame(packet, seq + 1)
            begun = time.perf_counter()
            link.sendall(framed)
            answer, seq = read_packet(link)
            spent += time.perf_counter() - begun
            if is_err(answer):
                assert parse_err(answer).code == ACCESS_DENIED
                return spent
            switch = AuthSwitchRequest.parse(answer)
            if switch is not None:
                exchange = CLIENTS[switch.plugin]("wrong", switch.data, PRIVATE)
                packet = next(exchange)
            else:
                more = AuthMoreData.parse(answer)
                assert more is not None
                packet = exchange.send(more.data)


def chance_of(known: Sequence[float], unknown: Sequence[float], rounds: int, seed: int) -> float:
    """Return how often times that are swapped within pairs differ as much as they do."""
    timed = sorted(
        (value, pair, owner)
        for owner, values in enumerate((known, unknown))
        for pair, value in enumerate(values)
    )
    wanted = int(len(known) * QUANTILE)

    def difference(swapped: Sequence[bool]) -> float:
        left = [wanted, wanted]
        found = [0.0, 0.0]
        for value, pair, owner in timed:
            side = owner ^ swapped[pair]
            if left[side] == 0:
                found[side] = value
            left[side] -= 1
        return abs(found[0] - found[1])

    found = difference([False] * len(known))
    draw = random.Random(seed)
    as_much = sum(difference([draw.random() < 0.5 for _ in known]) >= found for _ in range(rounds))
    return (as_much + 1) / (rounds + 1)


def compare(path: str, users: tuple[str, str], logins: int, rounds: int, seed: int) -> Comparison:
    """Measure a known and an unknown user."""
    times: dict[str, list[float]] = {user: [] for user in users}
    draw = random.Random(seed)
    for number in range(WARM_UP + logins):
        for user in draw.sample(users, 2):
            seconds = refuse(path, user)
            if number >= WARM_UP:
                times[user].append(seconds)
    known, unknown = (times[user] for user in users)
    chance = chance_of(known, unknown, rounds, seed)
    wanted = int(logins * QUANTILE)
    return Comparison(sorted(known)[wanted], sorted(unknown)[wanted], chance)


def main(arguments: Sequence[str] | None = None) -> dict[str, Comparison]:
    """Measure as the command line says; print a line for each method."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--logins", type=int, default=2000, help="of each kind, by each method")
    parser.add_argument("--rounds", type=int, default=1000, help="of the permutation test")
    parser.add_argument("--seed", type=int, default=7)
    options = parser.parse_args(arguments)
    accounts = {
        name: Account(f"known{number:05}", "%", (way,))
        for number, (name, way) in enumerate(ways().items())
    }
    book = AccountBook(accounts.values())
    found = {}
    print(f"{'':36} known      unknown    chance of such a difference")
    with tempfile.TemporaryDirectory(prefix="ibb-logins-") as name:
        folder = Path(name)
        book.save(str(folder / "accounts.toml"))
        path = str(folder / "socket")
        limits = ("--max-connect-errors=4294967296", "--log-level=error")
        server = ServeProcess(
            folder / "store",
            folder,
            user="",
            password="",
            arguments=(f"--socket={path}", *limits),
        ).start()
        try:
            for way, account in accounts.items():
                shape = outline(account.auth)
                names = (f"guess{number:05}" for number in range(100_000))
                guess = next(user for user in names if outline(book.decoy(user)) == shape)
                users = (account.user, guess)
                found[way] = compare(path, users, options.logins, options.rounds, options.seed)
                known, unknown, chance = found[way]
                print(f"{way:36} {known * 1e6:7.0f} us {unknown * 1e6:7.0f} us {chance:8.3f}")
        finally:
            server.kill()
    return found


if __name__ == "__main__":
    main()
