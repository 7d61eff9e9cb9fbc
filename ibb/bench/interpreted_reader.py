"""
The suite's reader without a compiler: what `reader.c` does, with the same arguments and output.

It costs about a hundred times as much, so that it is the reader that is measured where servers are
fast; the report says so. Run as `python -m ibb.bench.interpreted_reader`.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import resource
import selectors
import socket
import struct
import sys
import time
import zlib
from pathlib import Path
from typing import Final

RECEIVE_BYTES: Final = 256 << 10
PACKET_BYTES_MAX: Final = 256 << 20
GO_BYTES_MAX: Final = 64  # the line that lets it begin
SERVER_ID_AT: Final = 11  # in the packet that asks for a dump
_U32: Final = struct.Struct("<I")
_CHUNK: Final = 0xFFFFFF
_EVENT_HEADER: Final = 19
_GTID_EVENT: Final = 162
_XID_EVENT: Final = 16
_EOF_BYTES_MAX: Final = 9
_HASH_START: Final = 0xCBF29CE484222325
_HASH_FACTOR: Final = 0x100000001B3
_MASK: Final = (1 << 64) - 1


class Connection:
    """What one connection has brought; the attributes are the columns of the output."""

    def __init__(self, number: int, descriptor: int, *, content: bool) -> None:
        self.number = number
        self.socket = socket.socket(fileno=descriptor)
        self.status = ""
        self.size = self.events = self.groups = self.content = 0
        self.first_seq = self.last_seq = self.start = self.first = self.end = 0
        self.shape = _HASH_START
        self.arrived: list[tuple[int, int, int]] = []
        self._wants_content = content
        self._received = bytearray()
        self._payload = bytearray()  # of a packet that goes on in the next
        self._seq = 1
        self._in_group = False

    def take(self, data: memoryview, now: int, groups_max: int) -> str:
        """Take what was received; return how the connection has ended, if it has."""
        self._received += data
        at, size = 0, len(self._received)
        ended = ""
        while not ended and size - at >= 4:
            length = int.from_bytes(self._received[at : at + 3], "little")
            if size - at - 4 < length:
                break
            if self._received[at + 3] != self._seq:
                ended = self._wrong(f"packet {self._received[at + 3]} where {self._seq} was due")
                break
            self._seq = (self._seq + 1) % 256
            self._payload += self._received[at + 4 : at + 4 + length]
            at += 4 + length
            if length < _CHUNK:
                payload, self._payload = self._payload, bytearray()
                ended = self._packet(payload, now, groups_max)
            elif len(self._payload) > PACKET_BYTES_MAX:
                ended = self._wrong(f"a packet above {PACKET_BYTES_MAX} bytes")
        del self._received[:at]
        return ended

    def _wrong(self, text: str) -> str:
        sys.stderr.write(f"reader: {text}\n")
        return "error"

    def _packet(self, payload: bytearray, now: int, groups_max: int) -> str:
        if payload[:1] == b"\xfe" and len(payload) < _EOF_BYTES_MAX:
            return "end"
        if len(payload) < 1 + _EVENT_HEADER or payload[0]:
            return self._wrong(f"not an event: {bytes(payload[3:200])!r}")
        event = memoryview(payload)[1:]
        code, size = event[4], int.from_bytes(event[9:13], "little")
        if size != len(event):
            return self._wrong(f"an event of {len(event)} bytes says {size}")
        if code == _GTID_EVENT:
            self.last_seq = int.from_bytes(event[_EVENT_HEADER : _EVENT_HEADER + 8], "little")
            if not self._in_group and not self.first:
                self.first, self.first_seq = now, self.last_seq
            self._in_group = True
        if not self._in_group:
            return ""
        self.size += size
        self.events += 1
        self.shape = (self.shape ^ (size << 8 | code)) * _HASH_FACTOR & _MASK
        if self._wants_content and not self._check(event):
            return self._wrong(f"wrong checksum of an event of group {self.last_seq}")
        if code == _XID_EVENT:
            self._in_group = False
            self.groups += 1
            self.arrived.append((self.number, self.last_seq, now))
            if self.groups >= groups_max:
                return "full"
        return ""

    def _check(self, event: memoryview) -> bool:
        stored = int.from_bytes(event[-4:], "little")
        if zlib.crc32(event[:-4]) != stored:
            return False
        normal = bytearray(event[:-4])
        normal[9:17] = struct.pack("<II", len(normal), 0)
        self.content = zlib.crc32(normal, self.content)
        return True


class Reading:
    """All connections, until they have ended or the input closes."""

    def __init__(self, given: argparse.Namespace) -> None:
        self._given = given
        self._selector = selectors.DefaultSelector()
        self._buffer = bytearray(RECEIVE_BYTES)
        self._open = 0
        self.connections = [
            Connection(number, descriptor, content=given.hash)
            for number, descriptor in enumerate(given.descriptors)
        ]

    def run(self) -> None:
        """Read all."""
        waiting, stopped = list(reversed(self.connections)), False
        self._selector.register(sys.stdin, selectors.EVENT_READ)
        while not stopped and (self._open or waiting):
            while waiting and not (self._given.apart is not None and self._open):
                time.sleep(self._given.apart or 0)
                self._begin(waiting.pop())
            ready = self._selector.select(self._given.silence)
            if not ready:
                break
            for key, _ in ready:
                if key.data is None:
                    stopped = True
                else:
                    self._receive(key.data)
        now = time.monotonic_ns()
        for connection in self.connections:
            if not connection.status:
                connection.status, connection.end = "stopped" if stopped else "silent", now

    def _begin(self, connection: Connection) -> None:
        connection.start = time.monotonic_ns()
        connection.socket.setblocking(False)
        command = bytearray.fromhex(self._given.command)
        (server_id,) = _U32.unpack_from(command, SERVER_ID_AT)
        _U32.pack_into(command, SERVER_ID_AT, server_id + connection.number)
        connection.socket.send(command)
        self._selector.register(connection.socket, selectors.EVENT_READ, connection)
        self._open += 1

    def _receive(self, connection: Connection) -> None:
        try:
            size = connection.socket.recv_into(self._buffer)
        except BlockingIOError:
            return
        except ConnectionError:
            size = 0
        now = time.monotonic_ns()
        ended = "closed"
        if size:
            with memoryview(self._buffer) as data:
                ended = connection.take(data[:size], now, self._given.groups)
        if ended:
            connection.status, connection.end = ended, now
            self._selector.unregister(connection.socket)
            with contextlib.suppress(OSError):  # gone already
                connection.socket.shutdown(socket.SHUT_RDWR)
            self._open -= 1


def main() -> None:
    """Read as the command line says; see `reader.c`."""
    parser = argparse.ArgumentParser(prog="reader")
    parser.add_argument("--command", required=True)
    parser.add_argument("--groups", type=int, default=_MASK)
    parser.add_argument("--silence", type=float, default=60.0)
    parser.add_argument("--hash", action="store_true")
    parser.add_argument("--arrivals")
    parser.add_argument("--apart", type=float)
    parser.add_argument("descriptors", type=int, nargs="+")
    given = parser.parse_args()
    reading = Reading(given)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    if not os.read(sys.stdin.fileno(), GO_BYTES_MAX):  # unbuffered, since it is waited for as well
        return
    reading.run()
    if given.arrivals:
        arrived = [one for connection in reading.connections for one in connection.arrived]
        data = b"".join(
            struct.pack("<QQQ", *one) for one in sorted(arrived, key=lambda one: one[2])
        )
        Path(given.arrivals).write_bytes(data)
    for one in reading.connections:
        numbers = (one.size, one.events, one.groups, one.shape, one.content)
        places = (one.first_seq, one.last_seq, one.start, one.first, one.end)
        sys.stdout.write(" ".join(map(str, (one.status, *numbers, *places))) + "\n")
    used = resource.getrusage(resource.RUSAGE_SELF)
    sys.stdout.write(f"cpu {round((used.ru_utime + used.ru_stime) * 1e9)}\n")


if __name__ == "__main__":
    main()
