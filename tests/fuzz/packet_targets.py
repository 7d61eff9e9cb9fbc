"""Every parser of bytes from a stranger that needs nothing else: packets, logins, events, SQL."""

from ibb.protocol import caching_sha2_password, ed25519_password, native_password, parsec_password
from ibb.protocol.authentication import Channel
from ibb.protocol.binlog_state import BinlogState
from ibb.protocol.capabilities import CLIENT_CAPABILITIES, SERVER_CAPABILITIES, Capability
from ibb.protocol.change_user import parse_change_user
from ibb.protocol.command import parse_command
from ibb.protocol.errors import IbbError
from ibb.protocol.event import (
    HEADER_SIZE,
    TYPE_OFFSET,
    EventHeader,
    with_checksum,
    without_checksum,
)
from ibb.protocol.event_encoder import EventEncoder
from ibb.protocol.event_group import GroupTracker
from ibb.protocol.event_info import event_info
from ibb.protocol.event_splitter import EventSplitter
from ibb.protocol.format_description import FormatDescription
from ibb.protocol.gtid import GtidPosition
from ibb.protocol.gtid_event import GtidEvent
from ibb.protocol.gtid_list import GtidList
from ibb.protocol.handshake import (
    AuthMoreData,
    AuthSwitchRequest,
    Greeting,
    HandshakeResponse,
    SslRequest,
)
from ibb.protocol.heartbeat import Heartbeat
from ibb.protocol.packet import PacketReader, PacketStream
from ibb.protocol.prepared_statement import Parameters
from ibb.protocol.reply import parse_eof, parse_err, parse_ok
from ibb.protocol.result_set import ReplyReader
from ibb.protocol.rotate import Rotate
from ibb.server.sql.parser import parse_statement

PACKET_BYTES_MAX = 1 << 20
BEFORE = HandshakeResponse(CLIENT_CAPABILITIES, 1 << 24, 45, "repl", b"")

METHODS = (
    native_password.NativePassword(),
    ed25519_password.Ed25519Password(),
    parsec_password.ParsecPassword(),
    caching_sha2_password.CachingSha2Password(),
)
DECOYS = tuple(each.decoy(each.make("", b"s" * each.salt_bytes), bytes(32)) for each in METHODS)
CLIENTS = (
    native_password.client_exchange,
    ed25519_password.client_exchange,
    parsec_password.client_exchange,
    caching_sha2_password.client_exchange,
)


def fuzz_packets(data):
    """One payload into one parser; the first byte says which."""
    _try_one(PACKET_PARSERS, data)


def fuzz_events(data):
    """What an upstream or a publisher takes for events; the first byte says who looks at it."""
    _try_one(EVENT_PARSERS, data)


def fuzz_statements(data):
    """The text of a statement."""
    try:
        parse_statement(data.decode(errors="replace"))
    except IbbError:
        return


def _try_one(parsers, data):
    if not data:
        return
    try:
        parsers[data[0] % len(parsers)](data[1:])
    except IbbError:
        return


def _packet_stream(data):
    """Packets cut in pieces of any size: the same payloads as all at once."""
    step = (data[0] if data else 0) + 1
    assert _payloads(data, step) == _payloads(data, len(data) or 1)


def _payloads(data, step):
    """Return the payloads, and the kind of error behind them if there is one."""
    packets, found = PacketReader(PACKET_BYTES_MAX, None), []
    try:
        for start in range(0, len(data), step):
            packets.feed(data[start : start + step])
            while (packet := packets.next_packet()) is not None:
                found.append((packet.payload, packet.seq))
    except IbbError as error:
        found.append(type(error))
    return found


def _reply(data):
    replies = ReplyReader()
    packets = PacketReader(PACKET_BYTES_MAX, None)
    packets.feed(data)
    while (packet := packets.next_packet()) is not None:
        if replies.add(packet.payload) is not None:
            return


def _server_side(data):
    """Answers by which nobody can log in."""
    number = data[0] % len(METHODS) if data else 0
    method = METHODS[number]
    exchange = method.exchange(DECOYS[number], b"A" * method.challenge_bytes, Channel(private=True))
    next(exchange)
    verdicts = []
    try:
        exchange.send(data[1 : len(data) // 2])
        exchange.send(data[len(data) // 2 :])
    except StopIteration as end:
        verdicts.append(end.value)
    assert not any(verdict.proven for verdict in verdicts)


def _client_side(data):
    client = CLIENTS[data[0] % len(CLIENTS)] if data else CLIENTS[0]
    exchange = client("secret", data[1:33], Channel())
    try:
        next(exchange)
        exchange.send(data[33:])
        exchange.send(b"")
    except StopIteration:
        return


def _text(parse):
    return lambda data: parse(data.decode(errors="replace"))


def _stream(data):
    """Events out of packets, as the relay cuts them, with their groups."""
    packets, events, tracker = PacketStream(), EventSplitter(), GroupTracker()
    step = (data[0] if data else 0) + 1
    for start in range(1, len(data), step):
        for fragment in packets.feed(data[start : start + step]):
            for part in events.feed(fragment.data):
                if part.first:
                    tracker.add(part.header, part.data[HEADER_SIZE:])


def _encode(data):
    """A stored group for a client of any capability, without overlong or truncated events."""
    if not data:
        return
    options = data[0]
    encoder = EventEncoder(
        checksum=bool(options & 1),
        annotate=bool(options & 2),
        capability=options >> 2 & 7,
        skip_marked=bool(options & 32),
    )
    middle = len(data) // 2
    size = left = 0
    for part in encoder.encode_group([data[1:middle], data[middle:]]):
        if part.first:
            assert not left
            size = left = part.total_length
        left -= len(part.data)
        assert 0 <= left < size
        assert part.last == (not left)


def _parameters(data):
    """Two executions of one statement: the second may leave the types out."""
    parameters = Parameters(data[0] if data else 0)
    middle = len(data) // 2
    for body in (data[1:middle], data[middle:]):
        assert len(parameters.read(body, {1: b"long"})) == (data[0] if data else 0)


def _info(data):
    if len(data) >= HEADER_SIZE:
        assert event_info(data[TYPE_OFFSET], data) is not None


def _checksums(data):
    if len(data) < HEADER_SIZE:
        return
    assert without_checksum(with_checksum(data))[HEADER_SIZE:] == data[HEADER_SIZE:]
    without_checksum(data)


PACKET_PARSERS = (
    parse_command,
    lambda data: HandshakeResponse.parse(data, SERVER_CAPABILITIES | Capability.SSL),
    Greeting.parse,
    SslRequest.parse,
    AuthSwitchRequest.parse,
    AuthMoreData.parse,
    lambda data: parse_change_user(data, SERVER_CAPABILITIES, BEFORE),
    parse_ok,
    parse_eof,
    parse_err,
    _packet_stream,
    _reply,
    _server_side,
    _client_side,
    _parameters,
)

EVENT_PARSERS = (
    EventHeader.unpack,
    GtidEvent.parse,
    GtidList.parse,
    Rotate.parse,
    Heartbeat.parse,
    lambda data: FormatDescription.parse(data, has_checksum=False),
    lambda data: FormatDescription.parse(data, has_checksum=True),
    _text(BinlogState.parse),
    _text(GtidPosition.parse),
    _stream,
    _encode,
    _checksums,
    _info,
)
