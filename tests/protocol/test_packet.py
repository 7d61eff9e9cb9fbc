"""Framing and its undoing: any cut gives the same payloads, no announcement costs memory."""

import itertools
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ibb.protocol import packet
from ibb.protocol.errors import ProtocolError
from ibb.protocol.packet import (
    CHUNK_BYTES,
    READ_AHEAD_BYTES_MAX,
    WHOLE_PACKET_BYTES_MAX,
    Packet,
    PacketFragment,
    PacketFramer,
    PacketReader,
    PacketsOutOfOrder,
    PacketStream,
    PacketTooLarge,
    frame,
    frame_all,
    next_seq,
)

EMPTY_LAST = [CHUNK_BYTES - 1, CHUNK_BYTES, CHUNK_BYTES + 1, 2 * CHUNK_BYTES]
payload_lists = st.lists(st.binary(max_size=40), max_size=8)


def drain(reader):
    return list(iter(reader.next_packet, None))


def pieces(data, cuts):
    edges = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    return [data[start:end] for start, end in itertools.pairwise(edges)]


def test_a_small_payload_has_one_header():
    assert frame(b"\x0e", 0) == b"\x01\x00\x00\x00\x0e"
    assert frame(b"", 255) == b"\x00\x00\x00\xff"
    assert frame(memoryview(b"ab"), 3) == b"\x02\x00\x00\x03ab"


@pytest.mark.parametrize("length", EMPTY_LAST)
def test_a_large_payload_is_cut_where_a_real_server_cuts(length):
    """A full chunk is always followed by another, if need be an empty one."""
    payload = bytes(range(256)) * (length // 256 + 1)
    payload = payload[:length]
    raw = frame(payload, 254)
    sizes, seqs, offset = [], [], 0
    while offset < len(raw):
        sizes.append(int.from_bytes(raw[offset : offset + 3], "little"))
        seqs.append(raw[offset + 3])
        offset += 4 + sizes[-1]
    assert sizes == [CHUNK_BYTES] * (length // CHUNK_BYTES) + [length % CHUNK_BYTES]
    assert seqs == [(254 + index) & 255 for index in range(len(sizes))]
    reader = PacketReader(length, expected_seq=254)
    reader.feed(raw)
    assert drain(reader) == [Packet(payload, seqs[-1])]
    assert reader.expected_seq == next_seq(seqs[-1])


@given(payload_lists, st.integers(0, 255))
def test_frame_all_counts_on_and_wraps(payloads, seq):
    raw, after = frame_all(payloads, seq)
    one_by_one = [frame(payload, (seq + index) & 255) for index, payload in enumerate(payloads)]
    assert raw == b"".join(one_by_one)
    assert after == (seq + len(payloads)) & 255


@given(payload_lists, st.lists(st.integers(0, 400), max_size=12), st.integers(0, 255))
def test_any_cut_gives_the_same_packets(payloads, cuts, seq):
    raw, after = frame_all(payloads, seq)
    reader = PacketReader(40, expected_seq=seq)
    got = []
    for piece in pieces(raw, cuts):
        reader.feed(piece)
        got += drain(reader)
    assert [payload for payload, _ in got] == payloads
    assert [one.seq for one in got] == [(seq + index) & 255 for index in range(len(got))]
    assert reader.expected_seq == after
    assert reader.buffered == 0


def test_one_byte_at_a_time():
    raw, _ = frame_all([b"\x03select 1", b"", b"\x01"], 0)
    reader = PacketReader(100)
    got = []
    for index in range(len(raw)):
        reader.feed(raw[index : index + 1])
        got += drain(reader)
    assert [one.payload for one in got] == [b"\x03select 1", b"", b"\x01"]


@pytest.fixture
def small_chunks(monkeypatch):
    """Chunks of 8 bytes, so that hypothesis reaches every border in no time."""
    monkeypatch.setattr(packet, "CHUNK_BYTES", 8)
    monkeypatch.setattr(packet, "WHOLE_PACKET_BYTES_MAX", 4)


@pytest.mark.usefixtures("small_chunks")
def test_chunks_join_and_split_at_every_border_and_cut():
    """Sizes 0 to 33 over chunks of 8, each fed in steps of 1 to 13 bytes."""
    for length in range(34):
        payload = bytes(range(length))
        raw, after = frame_all([payload, b"next"], 0)
        for step in range(1, 14):
            reader = PacketReader(40, expected_seq=0)
            stream = PacketStream(expected_seq=0)
            packets, fragments = [], []
            for start in range(0, len(raw), step):
                reader.feed(raw[start : start + step])
                packets += drain(reader)
                fragments += [
                    one._replace(data=bytes(one.data))
                    for one in stream.feed(raw[start : start + step])
                ]
            assert [one.payload for one in packets] == [payload, b"next"]
            assert joined(fragments) == [payload, b"next"]
            assert packets[-1].seq == fragments[-1].seq == (after - 1) & 255
            assert all(one.data for one in fragments if not one.last)
            assert stream.at_boundary


def joined(fragments):
    payloads = []
    for fragment in fragments:
        assert fragment.first == (not payloads or isinstance(payloads[-1], bytes))
        if fragment.first:
            payloads.append([])
        payloads[-1].append(fragment.data)
        if fragment.last:
            payloads[-1] = b"".join(payloads[-1])
    return payloads


@pytest.mark.usefixtures("small_chunks")
@given(st.binary(max_size=60), st.lists(st.integers(0, 60), max_size=8), st.integers(0, 255))
@settings(max_examples=60)
def test_framer_does_not_care_how_a_payload_comes(payload, cuts, seq):
    framer = PacketFramer(len(payload), seq)
    out = []
    for piece in pieces(payload, cuts):
        out += framer.feed(piece)
    raw, after = frame_all([payload], seq)
    assert b"".join(out) == raw
    assert framer.next_seq == after
    assert framer.done


def test_framer_sends_views_and_no_copies():
    payload = bytes(100_000)
    header, body = PacketFramer(len(payload), 1).feed(payload)
    assert bytes(header) == b"\xa0\x86\x01\x01"
    assert isinstance(body, memoryview)
    assert body.obj is payload


def test_framer_is_not_done_while_bytes_or_headers_are_due():
    framer = PacketFramer(2, 0)
    assert not framer.done
    framer.feed(b"a")
    assert not framer.done
    framer.feed(b"b")
    assert framer.done
    empty = PacketFramer(0, 9)
    assert not empty.done
    assert empty.feed(b"") == [b"\x00\x00\x00\x09"]
    assert empty.done


def test_more_than_announced_is_a_bug_of_ours():
    with pytest.raises(AssertionError):
        PacketFramer(2, 0).feed(b"abc")


def test_sequence_ids_must_follow_each_other():
    reader = PacketReader(100, expected_seq=1)
    reader.feed(frame(b"a", 1) + frame(b"b", 3))
    assert reader.next_packet() == Packet(b"a", 1)
    with pytest.raises(PacketsOutOfOrder, match="sequence id 3, not 2"):
        reader.next_packet()
    stream = PacketStream(expected_seq=1)
    with pytest.raises(PacketsOutOfOrder, match="sequence id 3, not 2"):
        list(stream.feed(frame(b"a", 1) + frame(b"b", 3)))


def test_each_command_may_begin_at_zero_again():
    reader = PacketReader(100)
    reader.feed(frame(b"a", 0) + frame(b"b", 0))
    assert reader.next_packet() == Packet(b"a", 0)
    reader.expected_seq = 0
    assert reader.next_packet() == Packet(b"b", 0)


def test_sequence_ids_can_be_ignored():
    raw = frame(b"a", 7) + frame(b"b", 1)
    reader = PacketReader(100, expected_seq=None)
    reader.feed(raw)
    assert [one.seq for one in drain(reader)] == [7, 1]
    assert [one.seq for one in PacketStream(expected_seq=None).feed(raw)] == [7, 1]


def test_a_length_above_the_limit_is_refused_at_its_header():
    reader = PacketReader(10)
    reader.feed(b"\x0a\x00\x00\x00" + b"x" * 10)
    assert reader.next_packet() == Packet(b"x" * 10, 0)
    reader.feed(b"\x0b\x00\x00\x01")
    with pytest.raises(PacketTooLarge, match="11 bytes or more, 10 allowed"):
        reader.next_packet()


def test_the_limit_counts_all_chunks_of_a_payload():
    reader = PacketReader(CHUNK_BYTES + 5)
    reader.feed(frame(bytes(CHUNK_BYTES), 0)[:-4] + b"\x06\x00\x00\x01")
    with pytest.raises(PacketTooLarge):
        reader.next_packet()


def test_the_limit_may_grow_after_login():
    reader = PacketReader(4)
    reader.feed(frame(b"12345", 0))
    reader.packet_bytes_max = 5
    assert reader.next_packet() == Packet(b"12345", 0)


def test_garbage_is_refused_without_memory():
    """An HTTP request reads as a packet of 5.5 MB with sequence id 32."""
    reader = PacketReader(1 << 30)
    reader.feed(b"GET / HTTP/1.1\r\n\r\n")
    with pytest.raises(ProtocolError):
        reader.next_packet()


def test_a_reader_holds_one_packet_and_the_allowance_at_most():
    reader = PacketReader(100)
    reader.feed(bytes(READ_AHEAD_BYTES_MAX + 100))
    with pytest.raises(PacketTooLarge, match="ahead"):
        reader.feed(b"x")


def test_detach_hands_over_what_was_read_too_far():
    reader = PacketReader(100)
    reader.feed(frame(b"OK", 0) + b"rest")
    reader.next_packet()
    assert reader.buffered == 4
    assert reader.detach() == b"rest"
    assert reader.buffered == 0


@given(payload_lists, st.lists(st.integers(0, 400), max_size=12))
def test_a_stream_gives_small_payloads_whole(payloads, cuts):
    raw, _ = frame_all(payloads, 1)
    stream = PacketStream()
    got = []
    for piece in pieces(raw, cuts):
        got += [one._replace(data=bytes(one.data)) for one in stream.feed(piece)]
    assert got == [
        PacketFragment(payload, True, True, (1 + index) & 255)
        for index, payload in enumerate(payloads)
    ]


def test_a_stream_is_at_a_boundary_between_payloads_only():
    stream = PacketStream(expected_seq=0)
    assert stream.at_boundary
    raw = frame(bytes(WHOLE_PACKET_BYTES_MAX + 10), 0)
    for cut in (2, 4, 1000):
        stream = PacketStream(expected_seq=0)
        list(stream.feed(raw[:cut]))
        assert not stream.at_boundary
        list(stream.feed(raw[cut:]))
        assert stream.at_boundary


def test_a_stream_refuses_a_payload_above_its_limit():
    stream = PacketStream(expected_seq=0, payload_bytes_max=CHUNK_BYTES)
    full = CHUNK_BYTES.to_bytes(3, "little")
    assert sum(len(one.data) for one in stream.feed(full + b"\0" + bytes(CHUNK_BYTES))) > 0
    with pytest.raises(PacketTooLarge):
        list(stream.feed(b"\x01\x00\x00\x01"))


def test_the_limit_of_a_stream_counts_each_payload_alone():
    stream = PacketStream(expected_seq=0, payload_bytes_max=100)
    raw, _ = frame_all([bytes(100)] * 3, 0)
    assert len(list(stream.feed(raw))) == 3


def test_a_stream_passes_a_huge_payload_in_little_memory():
    piece = bytes(128 << 10)
    stream = PacketStream(expected_seq=0)
    full = CHUNK_BYTES.to_bytes(3, "little")
    passed = 0
    tracemalloc.start()
    for seq in range(4):
        list(stream.feed(full + bytes([seq])))
        left = CHUNK_BYTES
        while left:
            for fragment in stream.feed(piece[:left]):
                passed += len(fragment.data)
            left -= min(left, len(piece))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert passed == 4 * CHUNK_BYTES
    assert peak < 1 << 20
