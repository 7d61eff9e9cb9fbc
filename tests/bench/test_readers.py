"""The reader in C and the interpreted one, against a server that says what a list says."""

import itertools
import socket
import struct
import threading
import zlib

import pytest

from ibb.bench import readers
from ibb.bench.errors import BenchError
from ibb.bench.events import Piece, bulk_group, one_row_group
from ibb.bench.readers import Readers, ReplicaConnection
from ibb.protocol.command import BinlogDump, parse_command
from ibb.protocol.event import with_checksum
from ibb.protocol.packet import frame_all
from ibb.protocol.reply import eof, err
from ibb.protocol.rotate import Rotate


class Canned(ReplicaConnection):
    """One end of a pair of sockets; at the other one a server sends *data* once it is asked."""

    def __init__(self, data, cut=1 << 20, then=None):
        self._socket, self._server = socket.socketpair()
        self._thread = threading.Thread(target=self._serve, args=(data, cut, then), daemon=True)
        self._thread.start()

    def _serve(self, data, cut, then):
        with self._server:
            asked = self._server.recv(1024)
            self.asked = parse_command(asked[4:])
            try:
                for at in range(0, len(data), cut):
                    self._server.sendall(data[at : at + cut])
                if then is not None:
                    then.wait(60)
            except OSError:
                pass  # the reader had enough


@pytest.fixture(params=["compiled", "interpreted"])
def kind(request, monkeypatch):
    if request.param == "interpreted":
        monkeypatch.setattr(readers, "compiled", lambda _: None)
    return request.param


def wire(piece: Piece) -> list[bytes]:
    starts = (0, *piece.ends[:-1])
    return [with_checksum(piece.data[a:b]) for a, b in zip(starts, piece.ends, strict=True)]


def stream(*groups, end=True):
    events = [with_checksum(Rotate.fake("bin.000001", 1).encode())]
    for group in groups:
        events += wire(group)
    payloads = [b"\0" + event for event in events] + ([eof()] if end else [])
    return frame_all(payloads, 1)[0]


def read(data, *, expect="end", cut=1 << 20, count=1, **options):
    with Readers([Canned(data, cut) for _ in range(count)], **options) as reading:
        reading.go()
        return reading.result(expect=expect)


GROUPS = [one_row_group().piece(seq) for seq in (7, 8, 9)]


@pytest.mark.parametrize("cut", [1 << 20, 7, 1])
def test_counts_and_hashes_groups_however_they_are_cut(kind, cut):
    (one,) = read(stream(*GROUPS), cut=cut, content=True).outcomes
    events = [event for group in GROUPS for event in wire(group)]
    shape = 0xCBF29CE484222325
    for event in events:
        shape = (shape ^ (len(event) << 8 | event[4])) * 0x100000001B3 % (1 << 64)
    assert one[:8] == (
        "end",
        sum(map(len, events)),
        15,
        3,
        shape,
        zlib.crc32(b"".join(group.data for group in GROUPS)),
        7,
        9,
    )
    assert one.start_ns <= one.first_ns <= one.end_ns


def test_events_outside_groups_count_for_nobody(kind):
    plain = read(stream(*GROUPS)).outcomes[0]
    rotate = with_checksum(Rotate.fake("bin.000002", 1).encode())
    between = [[rotate, *wire(group)] for group in GROUPS]
    payloads = [b"\0" + event for events in between for event in [*events, rotate]]
    assert read(frame_all([*payloads, eof()], 1)[0]).outcomes[0][1:5] == plain[1:5]


def test_an_event_that_goes_on_in_a_second_packet_is_one(kind):
    big = bulk_group(17 << 20).piece(3)
    joined = Piece(big.data, (*big.ends[:2], *big.ends[-1:]))
    fixed = bytearray(joined.data)
    struct.pack_into("<I", fixed, big.ends[1] + 9, big.ends[-2] - big.ends[1])
    whole = Piece(bytes(fixed), (*big.ends[:2], *big.ends[-2:]))
    (one,) = read(stream(whole, GROUPS[0]), content=True).outcomes
    assert (one.groups, one.events) == (2, 9)
    assert one.content == zlib.crc32(GROUPS[0].data, zlib.crc32(whole.data))


def test_stops_after_so_many_groups(kind):
    (one,) = read(stream(*GROUPS, end=False), expect="full", groups=2).outcomes
    assert (one.groups, one.last_seq) == (2, 8)


@pytest.mark.parametrize("apart", [0, 0.03])
def test_reads_one_after_the_other_when_asked(kind, apart):
    done = read(stream(*GROUPS), expect="full", count=3, groups=1, apart=apart).outcomes
    assert [one.groups for one in done] == [1, 1, 1]
    for before, after in itertools.pairwise(done):
        assert before.end_ns + apart * 1e9 <= after.start_ns


def test_each_connection_asks_under_a_server_id_of_its_own(kind):
    connections = [Canned(stream(*GROUPS)) for _ in range(3)]
    with Readers(connections) as reading:
        reading.go()
        reading.result(expect="end")
    assert all(isinstance(one.asked, BinlogDump) for one in connections)
    first = connections[0].asked.server_id
    assert [one.asked.server_id - first for one in connections] == [0, 1, 2]


def test_waits_until_it_is_stopped(kind):
    held = threading.Event()
    with Readers([Canned(stream(*GROUPS, end=False), then=held)], wait=True) as reading:
        reading.go()
        assert reading.result(expect="stopped").outcomes[0].status == "stopped"
    held.set()


def test_tells_when_each_group_arrived(kind, tmp_path):
    file = tmp_path / "arrivals"
    read(stream(*GROUPS), count=2, arrivals=file)
    found = list(struct.iter_unpack("<QQQ", file.read_bytes()))
    assert sorted((connection, seq) for connection, seq, _ in found) == [
        (connection, seq) for connection in (0, 1) for seq in (7, 8, 9)
    ]


def broken(change):
    data = bytearray(stream(*GROUPS))
    change(data)
    return bytes(data)


def flip_last_row(data):
    data[data.rindex(b"nnnn")] ^= 1


def wrong_sequence(data):
    data[3] += 1


def test_no_wrong_byte_passes(kind):
    with pytest.raises(BenchError, match="wrong checksum of an event of group 9"):
        read(broken(flip_last_row), content=True)
    with pytest.raises(BenchError, match="packet 2 where 1 was due"):
        read(broken(wrong_sequence))
    refusal = frame_all([err(1236, "HY000", "no such place")], 1)[0]
    with pytest.raises(BenchError, match="no such place"):
        read(refusal)
    with pytest.raises(BenchError, match="closed"):
        read(stream(*GROUPS, end=False))


def test_a_server_that_says_nothing_is_told(kind):
    held = threading.Event()
    silent = Canned(stream(*GROUPS, end=False), then=held)
    with (
        Readers([silent], silence_seconds=0.2) as reading,
        pytest.raises(BenchError, match="silent"),
    ):
        reading.go()
        reading.result(expect="end")
    held.set()
