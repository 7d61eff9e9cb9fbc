"""The independent reader finds what the sample binlogs hold, and notices what is wrong."""

import hashlib
import re

import pytest

from ..sample_directories import NAMES
from .binlog import Binlog
from .chunks import DUMMY, LAST, XA_PREPARE
from .files import Place, crc32c, images_in
from .references import check_references
from .states import StateCheck


@pytest.mark.parametrize("name", NAMES)
def test_a_sample_holds_what_is_expected_and_breaks_no_rule(sample, name):
    path, expected = sample(name)
    binlog = Binlog(images_in(path))
    states = StateCheck(binlog)
    assert (binlog.problems, states.problems, check_references(binlog)) == ([], [], [])
    assert [min(binlog.files), max(binlog.files)] == expected["files"]
    assert {file.header.major for file in binlog.files.values()} == {expected["major"]}
    found = [
        {
            "gtid": str(group.gtid),
            "file": group.place.file_no,
            "offset": group.place.offset,
            "bytes": len(group.data),
            "sha256": hashlib.sha256(group.data).hexdigest(),
        }
        for group in binlog.groups
    ]
    assert found == expected["groups"]
    assert sorted(map(str, states.state)) == sorted(expected["state"])


def changed(images, place, data):
    """Return the files with other bytes at a place, checksums made right again."""
    image = bytearray(images[place.file_no])
    image[place.offset : place.offset + len(data)] = data
    page_size = 1 << image[4]
    start = place.offset - place.offset % page_size
    ends = [start + page_size - 4] if start else [508, page_size - 4]
    for end in ends:
        image[end : end + 4] = crc32c(bytes(image[start:end])).to_bytes(4, "little")
    return {**images, place.file_no: bytes(image)}


def complaints(images):
    """Return all that is found wrong."""
    binlog = Binlog(images)
    problems = [*binlog.problems, *StateCheck(binlog).problems]
    return " | ".join(what for _, what in problems or check_references(binlog))


def behind(place, size):
    return Place(place.file_no, place.offset + size)


def data_of_record(binlog, places, size_min=1):
    """Return where the data of the first such record begins that is all in one chunk."""
    return next(
        behind(record.place, 3)
        for record in binlog.records
        if record.place in places and len(record.chunks) == 1 and len(record.data) >= size_min
    )


def large_group(binlog):
    """Return a group of trees high enough for inner nodes, and its places."""
    return next(
        group
        for group in binlog.groups
        if len(binlog.commits[group.place].lists) == 1 and len(group.nodes) > 5
    )


def filler(binlog):
    """Return the place of a filler byte."""
    for file in binlog.files.values():
        for number in range(1, file.pages):
            if file.page(number)[file.end - 1] == 0xFF:
                ends = {chunk.end for chunk in binlog.chunks}
                for size in (1, 2, 3):
                    place = Place(file.number, number * file.page_size + file.end - size)
                    if place in ends:
                        return place
    raise AssertionError


def first(binlog, record_type):
    return next(record.place for record in binlog.records if record.type == record_type)


def header_field(binlog, offset):
    return Place(max(binlog.files) - 1, offset)


WRONG = {
    "a state record forgets a GTID": (
        lambda b: (data_of_record(b, b.states, 6), b"\0\0"),
        "state record of",
    ),
    "a state record has another number": (
        lambda b: (behind(data_of_record(b, b.states, 6), 4), b"\x78"),
        "state record of",
    ),
    "the filler is missing": (lambda b: (filler(b), b"\0"), "is no filler|behind the end of data"),
    "padding holds something": (lambda b: (behind(first(b, DUMMY), 3), b"x"), "dummy record of"),
    "a record has no end": (
        lambda b: (b.groups[5].place, bytes([1])),
        "goes on elsewhere|missing end chunk",
    ),
    "a record has no beginning": (
        lambda b: (b.groups[5].place, bytes([0x81 | LAST])),
        "starts with continuation chunk",
    ),
    "a chunk passes the page": (lambda b: (behind(b.groups[5].place, 1), b"\xff\xff"), "chunk of"),
    "a commit record counts one node too few": (
        lambda b: (behind(large_group(b).place, 3), bytes([(len(large_group(b).nodes) - 1) << 3])),
        "indexes of the list",
    ),
    "a node has another index": (
        lambda b: (behind(large_group(b).nodes[2].place, 3), b"\x18"),
        "indexes of the list",
    ),
    "a leaf has another link": (
        lambda b: (behind(large_group(b).nodes[1].place, 6), b"\x08"),
        "the rules say",
    ),
    "the header's interval is longer": (
        lambda b: (header_field(b, 40), bytes([4])),
        "state record where none is due",
    ),
    "the header's interval is shorter": (
        lambda b: (header_field(b, 40), bytes([1])),
        "no state record",
    ),
    "an XA transaction is not named": (
        lambda b: (Place(first(b, XA_PREPARE).file_no + 1, 56), bytes([255] * 8)),
        "XA reference None",
    ),
    "an older file is not named": (
        lambda b: next(
            (Place(number, 48), bytes([number]))
            for group in b.groups
            for number in range(group.end.file_no, 0, -1)
            if group.nodes and group.nodes[0].place.file_no < number
        ),
        "the header says",
    ),
    "LSNs go back": (lambda b: (header_field(b, 32), bytes(8)), "LSN 0 after"),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_what_breaks_a_rule_is_noticed(sample, case):
    images = images_in(sample("xa-small-1").path)
    assert complaints(images) == ""
    find, expected = WRONG[case]
    assert re.search(expected, complaints(changed(images, *find(Binlog(images)))))


def test_a_wrong_checksum_is_noticed(sample):
    images = images_in(sample("xa-small-1").path)
    for number, offset in ((0, 20), (3, 700)):
        image = bytearray(images[number])
        image[offset] ^= 1
        assert "checksum" in complaints({**images, number: bytes(image)})


def test_a_transaction_that_was_prepared_in_a_purged_file_is_no_problem(sample):
    """Its end alone is left; a purge keeps what is still prepared."""
    images = images_in(sample("xa-small-1").path)
    whole = Binlog(images)
    ended = {xa.xid for xa in whole.completes.values()}
    met = 0
    for oldest in sorted(images)[1:]:
        gone = {xa.xid for place, xa in whole.prepares.items() if place.file_no < oldest}
        left = Binlog({number: image for number, image in images.items() if number >= oldest})
        if gone <= ended and left.files:
            met += bool(gone & {xa.xid for xa in left.completes.values()})
            assert check_references(left) == []
    assert met > 0
