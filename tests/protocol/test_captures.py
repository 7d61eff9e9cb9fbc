"""
Every packet of every captured connection is read, and written again to the same bytes.

A capture is walked as the two sides walked it: greeting, login, commands with their replies,
dump. Whatever has an encoder must come out as it went in; what is in the events of a dump is
tested with the event codecs.
"""

import json
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from ibb.protocol import command, native_password, reply
from ibb.protocol.capabilities import Capability, effective
from ibb.protocol.command import (
    BinlogDump,
    CommandCode,
    Query,
    Quit,
    RegisterSlave,
    SemiSyncAck,
    parse_command,
)
from ibb.protocol.errors import SqlError
from ibb.protocol.handshake import (
    AuthMoreData,
    AuthSwitchRequest,
    Greeting,
    HandshakeResponse,
    SslRequest,
)
from ibb.protocol.packet import CHUNK_BYTES, PacketReader, PacketStream, frame_all, next_seq
from ibb.protocol.reply import Ok
from ibb.protocol.result_set import ReplyReader, ResultSet
from ibb.protocol.statement_command import (
    StmtClose,
    StmtExecute,
    StmtPrepare,
)

FOLDER = Path(__file__).parents[1] / "data" / "captures"
CAPTURES = sorted(FOLDER.glob("*.json"))
SESSION_STATE_CHANGED = 0x4000  # status bit


@dataclass
class Wire:
    """One captured packet; *length* exceeds that of *payload* where the capture was cut short."""

    client: bool
    seq: int
    payload: bytes
    length: int

    @property
    def whole(self):
        return self.length == len(self.payload)


def load(path):
    packets = []
    for entry in json.loads(path.read_text()):
        if entry["dir"] in ("C", "S") and "seq" in entry:
            payload = bytes.fromhex(entry["hex"])
            length = entry.get("len", len(payload))
            packets.append(Wire(entry["dir"] == "C", entry["seq"], payload, length))
    return packets


def names(paths):
    return [path.stem for path in paths]


@dataclass
class Connection:
    """What one capture turned out to hold."""

    greeting: Greeting
    response: HandshakeResponse | None = None
    proofs: list = field(default_factory=list)
    commands: list = field(default_factory=list)
    replies: list = field(default_factory=list)
    dump: list = field(default_factory=list)


def walk(packets):
    packets = iter(packets)
    first = next(packets)
    assert (first.client, first.seq) == (False, 0)
    greeting = Greeting.parse(first.payload)
    assert greeting.encode() == first.payload
    connection = Connection(greeting)
    answer = next(packets, None)
    if answer is None:
        return connection
    assert (answer.client, answer.seq) == (True, 1)
    if request := SslRequest.parse(answer.payload):
        assert request.encode() == answer.payload
        assert next(packets, None) is None  # TLS, which nobody went through with
        return connection
    connection.response = HandshakeResponse.parse(answer.payload, greeting.capabilities)
    assert connection.response.encode(greeting.capabilities) == answer.payload
    if walk_login(connection, packets):
        walk_commands(connection, packets)
    return connection


def walk_login(connection, packets):
    """Follow the plugins' exchange; return whether the client is in."""
    seq = 1
    proof = connection.response.auth_response
    for packet in packets:
        assert packet.seq == next_seq(seq)
        seq = packet.seq
        if packet.client:
            proof = packet.payload
        elif reply.is_ok(packet.payload):
            check_ok(packet)
            connection.proofs.append(proof)
            return True
        elif reply.is_err(packet.payload):
            connection.replies.append(check_err(packet))
            return False
        else:
            asked = AuthSwitchRequest.parse(packet.payload) or AuthMoreData.parse(packet.payload)
            assert asked.encode() == packet.payload
    return False


def walk_commands(connection, packets):
    both = effective(connection.greeting.capabilities, connection.response.capabilities)
    for packet in packets:
        assert packet.client
        assert packet.seq == 0
        asked = check_command(packet)
        connection.commands.append(asked)
        if isinstance(asked, BinlogDump):
            walk_dump(connection, packets)
        elif isinstance(asked, StmtPrepare):
            connection.dump += [one for one in packets if not one.client]  # prepared statements
        elif not isinstance(asked, Quit):
            connection.replies.append(walk_reply(packets, both))


def check_command(packet):
    asked = parse_command(packet.payload)
    if isinstance(asked, StmtExecute | StmtClose):
        assert asked.statement_id
    elif packet.payload[0] == CommandCode.BINLOG_DUMP:
        head, name = packet.payload[:11], packet.payload[11:]
        assert asked.encode() == head + name.split(b"\0")[0]
    elif packet.whole:
        assert asked.encode() == packet.payload
    return asked


def walk_reply(packets, both):
    """Read one reply, write it again, and return it."""
    reader = ReplyReader(both)
    seen = []
    for packet in packets:
        assert not packet.client
        seen.append(packet.payload)
        assert packet.seq == len(seen)
        try:
            answer = reader.add(packet.payload)
        except SqlError:
            return check_err(packet)
        if isinstance(answer, Ok):
            return check_ok(packet)
        if isinstance(answer, ResultSet):
            assert list(answer.packets(both)) == seen
            return answer
    return None


def walk_dump(connection, packets):
    for packet in packets:
        if packet.client:
            asked = parse_command(packet.payload)
            assert isinstance(asked, Quit | SemiSyncAck)
            assert asked.encode() == packet.payload
            connection.commands.append(asked)
            continue
        connection.dump.append(packet)
        if reply.is_err(packet.payload):
            connection.replies.append(check_err(packet))
        elif reply.is_eof(packet.payload):
            end = reply.parse_eof(packet.payload)
            assert reply.eof(status=end.status, warnings=end.warnings) == packet.payload
            connection.replies.append(end)


def check_ok(packet):
    """Write an OK again, up to the session states that only real servers add."""
    answer = reply.parse_ok(packet.payload)
    again = reply.ok(
        affected_rows=answer.affected_rows,
        last_insert_id=answer.last_insert_id,
        status=answer.status,
        warnings=answer.warnings,
        info=answer.info,
    )
    assert packet.payload.startswith(again)
    assert len(again) == packet.length or answer.status & SESSION_STATE_CHANGED
    return answer


def check_err(packet):
    error = reply.parse_err(packet.payload)
    assert reply.err_of(error) == packet.payload
    return error


def capture(name):
    (path,) = (path for path in CAPTURES if name in path.stem)
    return walk(load(path))


def test_no_capture_is_missing():
    listed = [
        line.split("|")[1].strip()
        for line in (FOLDER / "README.md").read_text().splitlines()
        if line.startswith("| p1")
    ]
    assert sorted(listed) == [path.name for path in CAPTURES]


@pytest.mark.parametrize("path", CAPTURES, ids=names(CAPTURES))
def test_every_packet_reads_and_writes_back(path):
    packets = load(path)
    connection = walk(packets)
    if connection.response is not None:
        assert connection.response.user in {"repl", "ed", "pa"}
        assert connection.proofs or isinstance(connection.replies[-1], SqlError)


@pytest.mark.parametrize("path", CAPTURES, ids=names(CAPTURES))
def test_framing_gives_back_the_captured_payloads(path):
    """All of a server's packets as one byte stream, read whole and in fragments."""
    for client in (False, True):
        packets = [one for one in load(path) if one.client == client]
        raw, payloads, goes_on = b"", [], False
        for one in packets:
            payload = one.payload.ljust(one.length, b"\0")
            raw += one.length.to_bytes(3, "little") + bytes([one.seq]) + payload
            if goes_on:
                payloads[-1] += payload
            else:
                payloads.append(payload)
            goes_on = one.length == CHUNK_BYTES
        reader = PacketReader(1 << 30, expected_seq=None)
        reader.feed(raw)
        assert [payload for payload, _ in iter(reader.next_packet, None)] == payloads
        stream = PacketStream(expected_seq=None)
        in_pieces = []
        for start in range(0, len(raw), 9999):
            for fragment in stream.feed(raw[start : start + 9999]):
                if fragment.first:
                    in_pieces.append(bytearray())
                in_pieces[-1] += fragment.data
        assert in_pieces == payloads
        assert stream.at_boundary


def test_a_17_mb_event_comes_in_two_chunks_as_a_real_server_cuts_it():
    packets = capture("B2_r10_huge").dump
    (index,) = (i for i, one in enumerate(packets) if one.length == CHUNK_BYTES)
    full, rest = packets[index], packets[index + 1]
    assert (full.payload[0], rest.length, rest.seq) == (0, 222_833, next_seq(full.seq))
    raw, _ = frame_all([bytes(full.length + rest.length)], full.seq)
    assert raw[:4] == b"\xff\xff\xff" + bytes([full.seq])
    offset = 4 + full.length
    assert raw[offset : offset + 4] == rest.length.to_bytes(3, "little") + bytes([rest.seq])
    assert len(raw) == 8 + full.length + rest.length


@pytest.mark.parametrize("path", CAPTURES, ids=names(CAPTURES))
def test_native_proofs_fit_the_password_or_were_refused(path):
    connection = walk(load(path))
    response = connection.response
    if response is None or response.user != "repl":
        return
    kept = native_password.stage2("replpw")
    good = native_password.check(response.auth_response, connection.greeting.scramble, kept)
    assert good == bool(connection.proofs)
    if not good:
        assert connection.replies[0].code == 1045


def test_greetings_say_what_the_reference_says():
    old, new = capture("A_r10_gtid").greeting, capture("R_r118_to_p118").greeting
    assert old.server_version == "5.5.5-10.11.19-MariaDB-0+deb12u1-log"
    assert (old.capabilities, old.collation, old.status) == (0x1D_81FF_F7FE, 8, 2)
    assert (new.capabilities, new.collation) == (0x3D_81FF_FFFE, 0x2D)
    assert old.auth_plugin == new.auth_plugin == "mysql_native_password"
    assert len(old.scramble) == 20


def test_clients_tell_themselves_apart_by_program_name():
    replica, tool = capture("A_r10_gtid").response, capture("H_mb10_text").response
    assert replica.capabilities == 0x8038A205
    assert replica.packet_bytes_max == 0x4000037B
    assert "program_name" not in replica.attributes
    assert replica.attributes["_client_name"] == "libmysql"
    assert tool.capabilities == 0x1D_00BE_A284
    assert tool.attributes["program_name"] == "mysqlbinlog"


def test_replica_asks_what_the_reference_says():
    connection = capture("A_r10_gtid")
    assert [one.sql for one in connection.commands if isinstance(one, Query)] == [
        "SELECT UNIX_TIMESTAMP()",
        "SHOW VARIABLES LIKE 'SERVER_ID'",
        "SET @master_heartbeat_period= 1000000000",
        "SET @master_binlog_checksum= @@global.binlog_checksum",
        "SELECT @master_binlog_checksum",
        "SET @mariadb_slave_capability=4",
        "SELECT @@GLOBAL.gtid_domain_id",
        "SET @slave_connect_state=''",
        "SET @slave_gtid_strict_mode=0",
        "SET @slave_gtid_ignore_duplicates=0",
    ]
    assert connection.commands[10:12] == [
        RegisterSlave(102, port=33102),
        BinlogDump(4, command.DumpFlag.SEND_ANNOTATE_ROWS, 102, ""),
    ]
    assert connection.replies[1].rows == [(b"server_id", b"101")]
    assert connection.replies[4].rows == [(b"CRC32",)]


def test_odd_file_names_of_other_clients_are_cut_at_the_nul():
    python = [one for one in capture("023-PMR_gtid").commands if isinstance(one, BinlogDump)]
    node = [one for one in capture("032-ZONGJI").commands if isinstance(one, BinlogDump)]
    assert [one.file_name for one in python + node] == ["", "bin.000001"]


def test_optional_layouts_are_read_where_both_sides_agreed_on_them():
    """The tool takes extended and cached metadata, and a real server gives it both."""
    connection = capture("H_mb10_text")
    both = effective(connection.greeting.capabilities, connection.response.capabilities)
    assert both & Capability.EXTENDED_METADATA
    assert both & Capability.CACHE_METADATA
    version = connection.replies[0]
    assert version.rows == [(b"10.11.19-MariaDB-0+deb12u1-log",)]
    assert (version.columns[0].name, version.columns[0].collation) == ("VERSION()", 0x2D)


def test_login_ok_of_11_8_carries_the_certificates_digest():
    packets = load(next(path for path in CAPTURES if "Q_r10_to_p118" in path.stem))
    answer = reply.parse_ok(packets[2].payload)
    assert len(answer.info) == 65
    assert answer.info[0] == 1


def test_dumps_end_as_the_reference_says():
    assert isinstance(capture("D_r10_until").replies[-1], Ok)
    assert capture("L_mb10_badfile").replies[-1].message == (
        "Could not find first log file name in binary log index file"
    )
    assert capture("008-U2_sameid").replies[-1].code == 4052
    acks = [one for one in capture("T_r10_to_p118").commands if isinstance(one, SemiSyncAck)]
    assert acks[0] == SemiSyncAck(807, "bin.000002")
    assert len(acks) == 4


def test_killing_ones_dump_is_a_query():
    kill = capture("T2_kill").commands[0]
    assert kill.sql.startswith("KILL ")
