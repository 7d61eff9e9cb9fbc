"""A primary that follows a script: for what a real one cannot be made to do."""

import asyncio
import time

from ibb.protocol.capabilities import SERVER_CAPABILITIES
from ibb.protocol.command import BinlogDump, Query, RegisterSlave, parse_command
from ibb.protocol.error_codes import ACCESS_DENIED_ERROR
from ibb.protocol.errors import SqlError
from ibb.protocol.event import with_checksum
from ibb.protocol.format_description import FormatDescription
from ibb.protocol.gtid_event import GtidEvent, GtidFlag
from ibb.protocol.handshake import AuthSwitchRequest, Greeting, HandshakeResponse
from ibb.protocol.native_password import check, stage2
from ibb.protocol.packet import PacketReader, frame_all
from ibb.protocol.reply import eof, err_of, ok
from ibb.protocol.result_set import Column, ResultSet
from ibb.protocol.rotate import Rotate

from ...storage.events import TIMESTAMP, query, xid

SCRAMBLE = b"abcdefghijklmnopqrst"
CUT = object()  # in a script: close without a word
HANG = object()  # say nothing more


def described(created=0, version="10.11.19-MariaDB-log", server_id=1):
    return FormatDescription(
        TIMESTAMP,
        server_id,
        0,
        4,
        version,
        created,
        FormatDescription.default(version, server_id, 0).post_header_lengths,
        1,
    ).to_wire(1, created)


def preamble(**format_options):
    return [with_checksum(Rotate.fake("bin.000001", 1).encode()), described(**format_options)]


def group(gtid, size=0):
    """Return the events of a transaction as they go over the wire."""
    head = GtidEvent(gtid=gtid, timestamp=TIMESTAMP, flags2=GtidFlag.TRANSACTIONAL).encode()
    body = query("x" * size if size else f"insert {gtid}", server=gtid.server)
    return [with_checksum(event) for event in (head, body, xid(7, server=gtid.server))]


def stored(gtid, size=0):
    """Return the bytes of the same group as they are stored."""
    head = GtidEvent(gtid=gtid, timestamp=TIMESTAMP, flags2=GtidFlag.TRANSACTIONAL).encode()
    body = query("x" * size if size else f"insert {gtid}", server=gtid.server)
    return head + body + xid(7, server=gtid.server)


class FakePrimary:
    """
    Answers a relay.

    Args:
        scripts: one for each connection that asks for a dump; the last one is repeated. A script
            yields events, an SqlError, `CUT`, `HANG`, tuples of bytes to be sent unframed, or
            an `asyncio.Event` to wait for.
        clock_ahead: seconds that ours is ahead of the relay's.
    """

    def __init__(self, *scripts, server_id=1, version="5.5.5-10.11.19-MariaDB", plugin=None,
                 clock_ahead=0):  # fmt: skip
        self.scripts = list(scripts)
        self.server_id = server_id
        self.version = version
        self.plugin = plugin
        self.clock_ahead = clock_ahead
        self.statements = []  # of each connection
        self.registered = []
        self.dumps = []
        self._tasks = set()

    async def __aenter__(self):
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_):
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, reader, writer):
        self._tasks.add(asyncio.current_task())
        try:
            await self._converse(reader, writer)
        except (ConnectionError, EOFError):
            pass
        finally:
            writer.transport.abort()

    async def _receive(self, reader, packets):
        while (packet := packets.next_packet()) is None:
            data = await reader.read(65536)
            if not data:
                raise EOFError
            packets.feed(data)
        return packet.payload

    async def _converse(self, reader, writer):
        def send(payloads, seq):
            data, after = frame_all(payloads, seq)
            writer.write(data)
            return after

        packets = PacketReader(1 << 20, None)
        send([Greeting(self.version, 5, SCRAMBLE, SERVER_CAPABILITIES, 8).encode()], 0)
        payload = await self._receive(reader, packets)
        response = HandshakeResponse.parse(payload, SERVER_CAPABILITIES)
        proof, seq, nonce = response.auth_response, 2, SCRAMBLE
        if self.plugin:
            nonce = SCRAMBLE[::-1]
            send([AuthSwitchRequest(self.plugin, nonce + b"\0").encode()], 2)
            proof, seq = await self._receive(reader, packets), 4
        if not check(proof, nonce, stage2("upstream-pw")):
            error = ACCESS_DENIED_ERROR.error(response.user, "localhost", "YES")
            send([err_of(error)], seq)
            return
        send([ok()], seq)
        self.statements.append([])
        while True:
            command = parse_command(await self._receive(reader, packets))
            if isinstance(command, Query):
                self.statements[-1].append(command.sql)
                send(self._answer(command.sql), 1)
            elif isinstance(command, RegisterSlave):
                self.registered.append(command)
                send([ok()], 1)
            else:
                assert isinstance(command, BinlogDump)
                self.dumps.append(command)
                script = self.scripts.pop(0) if len(self.scripts) > 1 else self.scripts[0]
                await self._run(script, writer, send)
                return

    def _answer(self, sql):
        if sql.startswith("SET"):
            return [ok()]
        rows = [("CRC32",)] if "checksum" in sql else [("1",)]
        if "UNIX_TIMESTAMP" in sql:
            rows = [(str(int(time.time()) + self.clock_ahead),)]
        if sql.startswith("SHOW"):
            rows = [("server_id", str(self.server_id))]
        columns = [Column.text(f"c{number}", 20) for number in range(len(rows[0]))]
        if "semi_sync" in sql:
            rows = []
        return list(ResultSet(columns, rows).packets())

    async def _run(self, script, writer, send):
        seq = 1
        for step in script:
            if step is CUT:
                break
            if step is HANG:
                await writer.drain()
                await asyncio.Event().wait()
            if isinstance(step, asyncio.Event):
                await step.wait()
                continue
            if isinstance(step, SqlError):
                send([err_of(step)], seq)
                break
            if isinstance(step, tuple):  # bytes as they are
                writer.write(step[0])
                continue
            seq = send([b"\0" + step], seq)
            await writer.drain()
        else:
            send([eof()], seq)
        await writer.drain()
        writer.write_eof()
