"""
A small blocking client that reads event groups from a replication master, one at a time.

It stands in for a replica where no MariaDB is installed, and checks what no replica shows: every
checksum, and that each group comes whole. It holds one event at a time.
"""

import hashlib
import socket
from collections.abc import Iterator
from typing import NamedTuple, Self

from ibb.protocol.authentication import Channel
from ibb.protocol.client_login import log_in, log_in_blocking
from ibb.protocol.command import BinlogDump, DumpFlag, Query, Quit, RegisterSlave
from ibb.protocol.errors import FormatError, ProtocolError
from ibb.protocol.event import HEADER_SIZE, EventHeader, without_checksum
from ibb.protocol.event_group import GroupStep, GroupTracker
from ibb.protocol.gtid import Gtid
from ibb.protocol.packet import PacketReader, frame, next_seq
from ibb.protocol.reply import OK_BYTE, Ok, is_eof, is_err, is_ok, parse_err
from ibb.protocol.result_set import ReplyReader, ResultSet

PACKET_BYTES_MAX = 64 << 20
RECEIVE_BYTES = 256 << 10
SECONDS_MAX = 60.0  # without a byte from the server


class ReceivedGroup(NamedTuple):
    """A whole event group: sizes and hash are of its events as stored, without checksums."""

    gtid: Gtid
    size: int
    sha256: str


class DumpClient:
    """
    One logged-in connection to the master on loopback *port*; a context manager that closes it.

    Raises:
        SqlError: the login was refused.
        ProtocolError: the server ended the connection or speaks something else.
        OSError: there is no such server, or it was silent for `SECONDS_MAX`.
    """

    def __init__(self, port: int, user: str, password: str) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), SECONDS_MAX)
        self._reader = PacketReader(PACKET_BYTES_MAX)
        try:
            self._log_in(user, password)
        except BaseException:
            self._socket.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """End the connection."""
        self._socket.close()

    def query(self, statement: str) -> Ok | ResultSet:
        """
        Run *statement*.

        Raises:
            SqlError: the server refused it.
        """
        self._command(Query(statement).encode())
        replies = ReplyReader()
        while (reply := replies.add(self._receive())) is None:
            pass
        return reply

    def groups(self, start: str, *, server_id: int, wait: bool) -> Iterator[ReceivedGroup]:
        """
        Yield the groups after the GTID position *start*, in the master's order.

        Args:
            start: as `gtid_slave_pos` is written; empty for the very beginning.
            server_id: of this client; of no other client of the master.
            wait: go on waiting for new groups, instead of ending with the last one stored.

        Raises:
            SqlError: the master refused or ended the stream with an error.
            FormatError: a checksum is wrong or a group is not whole.
        """
        self.query("SET @master_binlog_checksum = 'CRC32'")
        self.query("SET @mariadb_slave_capability = 4")
        self.query(f"SET @slave_connect_state = '{start}'")
        self._command(RegisterSlave(server_id).encode())
        self._expect_ok()
        flags = DumpFlag.SEND_ANNOTATE_ROWS | (DumpFlag(0) if wait else DumpFlag.NON_BLOCK)
        self._command(BinlogDump(4, flags, server_id, "").encode())
        tracker = GroupTracker()
        gtid, size, digest = None, 0, hashlib.sha256()
        while (event := self._next_event()) is not None:
            step = tracker.add(EventHeader.unpack(event), event[HEADER_SIZE:])
            if step is GroupStep.OUTSIDE:
                continue
            if step is GroupStep.BEGIN:
                gtid, size, digest = tracker.gtid, 0, hashlib.sha256()
            size += len(event)
            digest.update(event)
            if step is GroupStep.END:
                assert gtid is not None
                yield ReceivedGroup(gtid, size, digest.hexdigest())
        if tracker.gtid is not None:
            raise FormatError(f"the stream ended inside group {tracker.gtid}")
        self._command(Quit().encode())

    def _log_in(self, user: str, password: str) -> None:
        login = log_in(user, password, "ibb demo", lambda _offered: False, server="the server")
        log_in_blocking(login, self._answer, self._receive, _no_tls)

    def _next_event(self) -> bytes | None:
        payload = self._receive()
        if is_err(payload):
            raise parse_err(payload)
        if is_eof(payload):
            return None
        if payload[:1] != bytes([OK_BYTE]):
            raise ProtocolError(f"a dump packet begins with byte {payload[:1].hex()}")
        return without_checksum(payload[1:])

    def _expect_ok(self, payload: bytes | None = None) -> None:
        if payload is None:
            payload = self._receive()
        if is_err(payload):
            raise parse_err(payload)
        if not is_ok(payload):
            raise ProtocolError("OK wanted")

    def _command(self, payload: bytes) -> None:
        self._socket.sendall(frame(payload, 0))
        self._reader.expected_seq = 1

    def _answer(self, payload: bytes) -> None:
        """Send the next packet of an exchange that goes on."""
        seq = self._reader.expected_seq
        assert seq is not None
        self._socket.sendall(frame(payload, seq))
        self._reader.expected_seq = next_seq(seq)

    def _receive(self) -> bytes:
        while (packet := self._reader.next_packet()) is None:
            data = self._socket.recv(RECEIVE_BYTES)
            if not data:
                raise ProtocolError("the server ended the connection")
            self._reader.feed(data)
        return packet.payload


def _no_tls(_request: bytes) -> Channel:
    raise AssertionError("TLS was not wanted")
