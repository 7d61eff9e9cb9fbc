"""A copy of an encoder's state has all of it; packets can be counted on from any number."""

import re
from pathlib import Path

import pytest

from ibb.server.dump import encoder_state
from ibb.server.dump.run_encoder import RunEncoder
from ibb.server.dump.sequence_ids import renumber

from .made_streams import packets_of

ROOT = Path(encoder_state.__file__).parents[3]
TERMS = {  # of an encoder, or of one run
    *("walker", "packets", "is_last", "is_resting", "stop_at", "_starts", "_passed"),
    *("_start_domains", "_start_servers", "_start_numbers"),
    *("_domains", "_servers", "_numbers"),  # as many as `_gtids`: none
}
NOT_SAVED = {"packets.in_event", "packets._event_size", "packets._fate"}  # it is in no event
PACKET_TERMS = {"_fates", "_out", "_marked", "_checksum_size", "wanted"}


def fields(path, name):
    """Return the fields of a kernel's class."""
    found, body = set(), (ROOT / path).read_text().partition(f"cdef class {name}:")[2]
    for line in body.splitlines():
        field = re.fullmatch(r"    cdef (?:readonly |public )?([^()]*)", line)
        if field:
            first, *rest = re.sub(r"\[[^]]*\]", "", field[1]).split(",")
            found |= {first.split()[-1], *map(str.strip, rest)}
    return found


@pytest.mark.parametrize(
    ("path", "name", "variable", "others"),
    [
        ("ibb/server/dump/run_encoder.pxd", "RunEncoder", "(?:to|encoder)", TERMS),
        ("ibb/server/dump/event_packets.pxd", "EventPackets", "packets", PACKET_TERMS),
        ("ibb/storage/record_walker.pxd", "RecordWalker", "walker", set()),
    ],
)
def test_each_field_is_copied(path, name, variable, others):
    known = fields(path, name)
    assert len(known) > 10
    source = Path(encoder_state.__file__).with_name("encoder_state.py").read_text()
    body = source.partition("def copy_state")[2].partition("def attach")[0]
    copied = set(re.findall(rf"\b{variable}\.(\w+)(?=[^=\n]*=[^=])", body))
    assert copied | others == known
    saved = source.partition("def save_state")[2].partition("def load_state")[0]
    loaded = source.partition("def load_state")[2].partition("def attach")[0]
    assert fields_of(saved) | NOT_SAVED == fields_of(loaded)


def fields_of(body):
    """Return the fields of an encoder, its packets and walker that are named."""
    return set(re.findall(r"\bencoder\.((?:packets\.|walker\.)?\w+)", body)) - {"packets", "walker"}


def encoder():
    return RunEncoder(checksum=True, fates=bytes(256), marked=0)


def test_pages_that_do_not_hold_the_place_are_refused():
    one = encoder()
    one.seek(0, 600)
    assert one.walker.load(bytes(1024), 512, 1, 2, 508)
    assert not encoder_state.attach(one, bytes(512), 512, 3, 1, 508)
    other = encoder()
    encoder_state.copy_state(other, one)
    assert encoder_state.place_of(other) == (600, -1)
    assert encoder_state.attach(other, bytes(512), 512, 1, 1, 508)
    assert not encoder_state.attach(other, bytes(512), 512, 1, 1, 50)  # the place is behind them


@pytest.mark.parametrize("more", [0, 1, 255])
def test_packets_are_counted_from_another_number(more):
    packets = [
        (250 + number & 255, bytes([1]) * size) for number, size in enumerate((0, 5, 300) * 9)
    ]
    data = b"".join(
        len(payload).to_bytes(3, "little") + bytes([seq]) + payload for seq, payload in packets
    )
    target = bytearray(b"?" * (len(data) + 3))
    renumber(memoryview(data), more, target)
    assert packets_of(target[: len(data)]) == [(seq + more & 255, data) for seq, data in packets]
    assert target[len(data) :] == b"???"
    renumber(b"", more, target)
    with pytest.raises(ValueError, match="bytes of packets"):
        renumber(data, more, bytearray(len(data) - 1))


def test_packets_that_are_cut_are_copied_as_far_as_they_are_there():
    target = bytearray(7)
    renumber(b"\xff\xff\xff\x01abc", 1, target)
    assert target == b"\xff\xff\xff\x02abc"
