"""
A primary that sends a ready-made stream as fast as it is read, or at a steady rate of groups.

A relay's own speed shows only where its source is faster than any server is. It lets everybody in
who knows the bench's password, answers what a replica asks before a dump, and sends a file of
packets (`DataSet.stream`) behind a format description. Run as a module of its own, it prints
`ready PORT`, and for each dump `dump NS` when it was asked for.
"""

from __future__ import annotations

import argparse
import os
import secrets
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ibb.protocol.capabilities import SERVER_CAPABILITIES
from ibb.protocol.command import BinlogDump, Query, RegisterSlave, parse_command
from ibb.protocol.errors import ProtocolError
from ibb.protocol.handshake import Greeting, HandshakeResponse
from ibb.protocol.native_password import check, stage2
from ibb.protocol.packet import PacketReader, frame_all
from ibb.protocol.reply import ok
from ibb.protocol.result_set import Column, ResultSet
from ibb.server.connections.socket_options import send_unpaced

from .data_set import SERVER_VERSION, stream_head
from .errors import BenchError
from .peer import PASSWORD

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

COMMANDS_MAX: Final = 1000  # before a dump
SECONDS_MAX: Final = 60.0  # for a command
SEND_BYTES: Final = 1 << 20
_SERVER_ID: Final = 2002
_RECEIVE_BYTES: Final = 64 << 10
_COLLATION: Final = 45
_NONCE_LETTERS: Final = "abcdefghijklmnopqrstuvwxyz"


class _Session:
    """One connection, until it asks for the dump."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        self._packets = PacketReader(1 << 20, None)

    def until_dump(self) -> None:
        """Let the client log in and answer what it asks."""
        nonce = "".join(secrets.choice(_NONCE_LETTERS) for _ in range(20)).encode()
        version = "5.5.5-" + SERVER_VERSION
        self._send([Greeting(version, 1, nonce, SERVER_CAPABILITIES, _COLLATION).encode()], 0)
        response = HandshakeResponse.parse(self._receive(), SERVER_CAPABILITIES)
        if response is None or not check(response.auth_response, nonce, stage2(PASSWORD)):
            raise ProtocolError("the relay does not know the bench's password")
        self._send([ok()], 2)
        for _ in range(COMMANDS_MAX):
            command = parse_command(self._receive())
            if isinstance(command, BinlogDump):
                return
            if isinstance(command, Query):
                self._send(self._answer(command.sql), 1)
            elif isinstance(command, RegisterSlave):
                self._send([ok()], 1)
            else:
                raise ProtocolError(f"{type(command).__name__} is nothing that a relay sends")
        raise ProtocolError(f"no dump after {COMMANDS_MAX} commands")

    def _answer(self, sql: str) -> list[bytes]:
        if sql.startswith("SET"):
            return [ok()]
        row: tuple[str, ...] = ("1",)
        if "checksum" in sql:
            row = ("CRC32",)
        elif "SERVER_ID" in sql:
            row = ("server_id", str(_SERVER_ID))
        rows = [] if "semi_sync" in sql or sql.startswith("SHOW GLOBAL") else [row]
        width = 2 if sql.startswith("SHOW") else 1
        columns = [Column.text(f"column{number}", 20) for number in range(width)]
        return list(ResultSet(columns, rows).packets())

    def _send(self, payloads: Iterable[bytes], seq: int) -> None:
        self._socket.sendall(frame_all(payloads, seq)[0])

    def _receive(self) -> bytes:
        while (packet := self._packets.next_packet()) is None:
            data = self._socket.recv(_RECEIVE_BYTES)
            if not data:
                raise ProtocolError("the relay ended the connection")
            self._packets.feed(data)
        return packet.payload


def _send_all(connection: socket.socket, stream: Path) -> None:
    with stream.open("rb") as file:
        connection.sendfile(file, count=None)


def _send_paced(connection: socket.socket, stream: Path, group_bytes: int, rate: float) -> None:
    """Send groups, all of one size, each when it is due; the file has as many as there are."""
    data = stream.read_bytes()
    groups, sent, begun = len(data) // group_bytes, 0, time.monotonic()
    while sent < groups:
        due = min(groups, int((time.monotonic() - begun) * rate) + 1)
        if due > sent:
            connection.sendall(memoryview(data)[sent * group_bytes : due * group_bytes])
            sent = due
        time.sleep(max(0.0, begun + sent / rate - time.monotonic()))


def _say(word: str, number: int) -> None:
    sys.stdout.write(f"{word} {number}\n")
    sys.stdout.flush()


def main() -> None:
    """Serve the stream that the command line names, one connection after the other."""
    parser = argparse.ArgumentParser(prog="synthetic_primary")
    parser.add_argument("stream", type=Path)
    parser.add_argument("--group-bytes", type=int, default=0)
    parser.add_argument("--rate", type=float, default=0.0, help="groups a second; 0: all at once")
    given = parser.parse_args()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        _say("ready", listener.getsockname()[1])
        while True:
            connection, _ = listener.accept()
            with connection:
                connection.settimeout(SECONDS_MAX)
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                send_unpaced(connection)
                try:
                    _Session(connection).until_dump()
                    _say("dump", time.monotonic_ns())
                    connection.sendall(stream_head())
                    if given.rate:
                        _send_paced(connection, given.stream, given.group_bytes, given.rate)
                    else:
                        _send_all(connection, given.stream)
                    connection.settimeout(None)
                    connection.recv(1)  # wait, as a primary does, until the relay goes
                except (OSError, ProtocolError) as error:
                    sys.stderr.write(f"synthetic primary: {error}\n")
                    sys.stderr.flush()


class SyntheticPrimary:
    """
    The process, as seen from outside.

    Attributes:
        port: on loopback.
    """

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.port = self._word("ready")

    def dump_ns(self) -> int:
        """Wait until a dump was asked for and return when, by the monotonic clock."""
        return self._word("dump")

    def _word(self, wanted: str) -> int:
        assert self._process.stdout is not None
        word, _, number = self._process.stdout.readline().rstrip().partition(" ")
        if word != wanted:
            self._process.kill()
            raise BenchError(f"the synthetic primary failed: {self._process.communicate()[1]}")
        return int(number)


@contextmanager
def synthetic_primary(
    stream: Path, *, group_bytes: int = 0, rate: float = 0.0
) -> Iterator[SyntheticPrimary]:
    """
    Run one for a block.

    Args:
        stream: file of packets.
        group_bytes: of each group in it, packets and all; only with a rate.
        rate: groups a second; 0: as fast as they are read.
    """
    words = [sys.executable, "-m", __name__, os.fspath(stream)]
    words += [f"--group-bytes={group_bytes}", f"--rate={rate}"]
    process = subprocess.Popen(
        words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        yield SyntheticPrimary(process)
    finally:
        process.kill()
        process.communicate()


if __name__ == "__main__":
    main()
