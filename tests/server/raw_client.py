"""A client that sends exactly what a test wants and hides nothing of what comes back."""

import asyncio
import contextlib
import hashlib
import ssl
from dataclasses import dataclass, field

from ibb.protocol.capabilities import CLIENT_CAPABILITIES, Capability
from ibb.protocol.command import BinlogDump, DumpFlag, Query, SemiSyncAck
from ibb.protocol.event import EventHeader, EventType, without_checksum
from ibb.protocol.event_group import GroupStep, GroupTracker
from ibb.protocol.format_description import FormatDescription
from ibb.protocol.gtid import Gtid
from ibb.protocol.handshake import Greeting, HandshakeResponse, SslRequest
from ibb.protocol.native_password import PLUGIN_NAME, scramble_response
from ibb.protocol.packet import PacketReader, frame
from ibb.protocol.reply import is_eof, is_err, parse_err
from ibb.protocol.result_set import ReplyReader
from ibb.server.connections.tls_channel import TlsChannel

from .waiting import until

SECONDS_MAX = 20.0
PACKET_BYTES_MAX = 64 << 20


class RawClient:
    """One connection; `received` counts bytes."""

    def __init__(self, reader, writer):
        self.reader = reader
        self.writer = writer
        self.packets = PacketReader(PACKET_BYTES_MAX)
        self.greeting = None
        self.tls = None
        self.received = 0

    @classmethod
    async def connect(cls, address):
        if isinstance(address, str):
            return cls(*await asyncio.open_unix_connection(address))
        return cls(*await asyncio.open_connection(*address))

    @classmethod
    async def logged_in(cls, server, user="repl", password="secret", *, tls=False, **options):
        client = await cls.connect(server.address)
        if tls:
            await client.read_greeting()
            await client.start_tls()
        answer = await client.log_in(user, password, **options)
        assert answer[:1] == b"\0", answer
        return client

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_):
        await self.close()

    async def close(self):
        self.writer.transport.abort()
        with contextlib.suppress(OSError):
            await self.writer.wait_closed()

    async def send(self, payload, seq=0):
        self.packets.expected_seq = None
        data = frame(payload, seq)
        self.writer.write(data if self.tls is None else self.tls.send(data))
        await self.writer.drain()

    async def packet(self):
        """Return the next payload, or None when the server has closed."""
        self.packets.expected_seq = None
        async with asyncio.timeout(SECONDS_MAX):
            while (packet := self.packets.next_packet()) is None:
                data = await self.reader.read(1 << 16)
                if not data or (self.tls is not None and self.tls.ended):
                    assert not self.packets.buffered
                    return None
                if self.tls is not None:
                    data = self.tls.receive(data)
                self.received += len(data)
                self.packets.feed(data)
        self.seq = packet.seq
        return packet.payload

    async def read_greeting(self):
        self.greeting = Greeting.parse(await self.packet())

    async def start_tls(self, certificate=None, *, request=True, step=None, key_log=None):
        """Ask for TLS and begin it, in pieces of *step* bytes, without checking the certificate."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        if certificate is not None:
            context.load_cert_chain(*certificate)
        if key_log is not None:
            context.keylog_filename = str(key_log)
        tls = TlsChannel(context, server_side=False)
        tls.shake_hands(b"")
        data = tls.outgoing()
        if request:
            capabilities = CLIENT_CAPABILITIES | Capability.SSL
            data = frame(SslRequest(capabilities, 1 << 24, 8).encode(), 1) + data
        for start in range(0, len(data), step or len(data)):
            self.writer.write(data[start : start + (step or len(data))])
            await self.writer.drain()
        while not tls.shake_hands(await self._read_some()):
            self.writer.write(tls.outgoing())
        self.writer.write(tls.outgoing())
        self.tls = tls

    def fingerprint(self):
        return hashlib.sha256(self.tls.peer_certificate()).digest()

    async def _read_some(self):
        async with asyncio.timeout(SECONDS_MAX):
            data = await self.reader.read(1 << 16)
        assert data, "the server has closed"
        return data

    async def log_in(
        self,
        user="repl",
        password="secret",
        *,
        plugin=PLUGIN_NAME,
        attributes=None,
        claims=0,
    ):
        """Log in and return the payload that answers; *claims*: of what nobody offered."""
        if self.greeting is None:
            await self.read_greeting()
        proof = scramble_response(password, self.greeting.scramble)
        response = HandshakeResponse(
            CLIENT_CAPABILITIES,
            1 << 24,
            8,
            user,
            proof if plugin == PLUGIN_NAME else b"whatever",
            auth_plugin=plugin,
            attributes=attributes or {},
        )
        payload = bytearray(response.encode(self.greeting.capabilities))
        payload[:4] = (int.from_bytes(payload[:4], "little") | claims).to_bytes(4, "little")
        await self.send(bytes(payload), 1 + (self.tls is not None))
        return await self.packet()

    async def query(self, sql):
        """Return the OK or the result set; raises SqlError."""
        await self.send(Query(sql).encode())
        replies = ReplyReader()
        while True:
            reply = replies.add(await self.packet())
            if reply is not None:
                return reply

    async def rows(self, sql):
        result = await self.query(sql)
        return [tuple(v if v is None else v.decode() for v in row) for row in result.rows]

    async def value(self, sql):
        ((value,),) = await self.rows(sql)
        return value

    async def prepare(
        self, position=None, *, checksum=True, capability=4, heartbeat=None, **variables
    ):
        """Set what a replica sets before its dump."""
        if heartbeat is not None:
            await self.query(f"SET @master_heartbeat_period= {int(heartbeat * 1e9)}")
        if checksum:
            await self.query("SET @master_binlog_checksum= @@global.binlog_checksum")
        await self.query(f"SET @mariadb_slave_capability={capability}")
        if position is not None:
            await self.query(f"SET @slave_connect_state='{position}'")
        for name, value in variables.items():
            await self.query(f"SET @{name}='{value}'")

    async def dump(
        self,
        *,
        non_block=False,
        server_id=0,
        name="",
        position=4,
        annotate=True,
        semi_sync=False,
    ):
        """Ask for a dump and return what comes of it."""
        flags = DumpFlag(0)
        flags |= DumpFlag.NON_BLOCK if non_block else 0
        flags |= DumpFlag.SEND_ANNOTATE_ROWS if annotate else 0
        await self.send(BinlogDump(position, flags, server_id, name).encode())
        return Dump(self, semi_sync=semi_sync)

    async def acknowledge(self, name, position):
        """Reply as a semi-synchronous replica does."""
        await self.send(SemiSyncAck(position, name).encode())


async def until_sessions(server, count):
    """Wait until the server has so many sessions, as it finds out in its own time."""
    await until(lambda: len(server.sessions) == count)


@dataclass
class Group:
    gtid: Gtid
    events: list[bytes] = field(default_factory=list)

    @property
    def sha256(self):
        return hashlib.sha256(b"".join(self.events)).hexdigest()


class Dump:
    """The events of a dump: checked, without checksum, and the groups that they make."""

    def __init__(self, client, *, semi_sync=False):
        self.client = client
        self.semi_sync = semi_sync
        self.last_log_pos = 0
        self.asked = False  # for an acknowledgement of the last event
        self.tracker = GroupTracker()
        self.checksum = None  # until the format description
        self.format = None
        self.group = None
        self.expected_seq = 1

    async def event(self):
        """Return header and event, without checksum; None at EOF; raises SqlError."""
        payload = await self.client.packet()
        assert payload is not None, "the server closed without EOF or ERR"
        if len(payload) < 0xFFFFFF:
            assert self.client.seq == self.expected_seq % 256
        self.expected_seq = self.client.seq + 1
        if is_err(payload):
            raise parse_err(payload)
        if is_eof(payload):
            return None
        assert payload[0] == 0
        event = payload[1:]
        if self.semi_sync:
            assert event[0] == 0xEF
            assert event[1] in (0, 1)
            self.asked = event[1] == 1
            event = event[2:]
            if self.asked:
                self.expected_seq = 1
        header = EventHeader.unpack(event)
        assert header.length == len(event)
        if header.type == EventType.FORMAT_DESCRIPTION:
            self.format = FormatDescription.parse(event, has_checksum=True)
            self.checksum = self.format.checksum_alg == 1
        elif self.checksum:
            event = without_checksum(event)
        self.last_log_pos = header.log_pos
        return EventHeader.unpack(event), event

    async def preamble(self, *, rotate_checksum):
        """Return the fake Rotate, checked, having read the format description behind it."""
        _, rotate = await self.event()
        if rotate_checksum:
            rotate = without_checksum(rotate)
        header, _ = await self.event()
        assert header.type == EventType.FORMAT_DESCRIPTION
        return rotate

    async def next_group(self):
        """Return the next whole group, or None at EOF; heartbeats and lists are passed over."""
        group = None
        while True:
            found = await self.event()
            if found is None:
                assert group is None, "the dump ended inside a group"
                return None
            header, event = found
            step = self.tracker.add(header, event[19:])
            if step is GroupStep.OUTSIDE:
                continue
            if step is GroupStep.BEGIN:
                group = Group(self.tracker.gtid)
            group.events.append(event)
            if step is GroupStep.END:
                return group
            assert not self.asked, "asked for an acknowledgement inside a group"

    async def groups(self, count=None):
        """Return groups until EOF, or *count* of them."""
        found = []
        while count is None or len(found) < count:
            group = await self.next_group()
            if group is None:
                break
            found.append(group)
        return found


async def dumping(
    server,
    position="",
    *,
    user="repl",
    checksum=True,
    non_block=True,
    server_id=0,
    tls=False,
    **variables,
):
    """Log in, begin a dump, and take what comes before its first group."""
    client = await RawClient.logged_in(server, user, tls=tls)
    await client.prepare(position, checksum=checksum, **variables)
    dump = await client.dump(non_block=non_block, server_id=server_id)
    await dump.preamble(rotate_checksum=checksum)
    return dump
