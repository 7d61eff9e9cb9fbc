"""Records are joined over pages and files whatever is nested in them, and never half."""

import tempfile
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ibb.protocol.errors import FormatError
from ibb.protocol.gtid import Gtid
from ibb.storage.directory import BinlogDirectory
from ibb.storage.os_disk import OsDisk
from ibb.storage.position import Position
from ibb.storage.record import RecordType
from ibb.storage.record_reader import RecordReader

from .binlog_builder import BinlogBuilder

NESTED = {RecordType.GTID_STATE, RecordType.DUMMY}

layouts = st.fixed_dictionaries(
    {
        "page_size": st.sampled_from([512, 1024]),
        "pages": st.integers(5, 9),
        "interval": st.integers(0, 5),
        "major": st.sampled_from([0, 1]),
        "first": st.sampled_from([0, 7]),
    }
)
# Up to 1600 bytes and the states in between are less than the smallest file. Sizes that fill a
# page exactly, or leave less than a chunk, come from the narrow range.
sizes = st.integers(1, 1600) | st.integers(490, 512)
records = st.lists(
    st.tuples(st.sampled_from([1, 3, 5, 6, 7, 62]), sizes, st.integers(0, 9)), max_size=25
)


class FinalDirectory(BinlogDirectory):
    """As if the writer were in this process."""

    tail_is_final = True


@contextmanager
def built(layout, wanted, *, directory=BinlogDirectory):
    """Yield a source with the records, and what a reader must find."""
    builder, found = BinlogBuilder(**layout), []
    for number, (record_type, size, domain) in enumerate(wanted, start=1):
        data = bytes([number % 256]) * size
        gtid = Gtid(domain, number % 3, number) if record_type == RecordType.COMMIT else None
        found.append((record_type, builder.record(record_type, data, gtid), data))
    with tempfile.TemporaryDirectory() as path:
        builder.write(Path(path))
        source = directory(OsDisk(), path)
        yield source, found, builder
        source.close()


def read_all(reader):
    found = []
    while (record := reader.next()) is not None:
        if record.type not in NESTED:
            found.append((record.type, record.position, bytes(record.contents())))
    return found


@given(layouts, records)
def test_all_records_come_whole_with_their_places(layout, wanted):
    with built(layout, wanted) as (source, found, builder):
        reader = RecordReader(source, Position(builder.first, 0))
        assert read_all(reader) == found
        assert reader.next() is None
        assert source.oddities.found == []
        if found:
            assert reader.position == source.end()


@given(layouts, records)
def test_a_page_in_the_middle_is_a_place_to_begin(layout, wanted):
    with built(layout, wanted) as (source, found, builder):
        for index, image in enumerate(builder.files):
            for offset in range(builder.page_size, len(image), builder.page_size):
                start = Position(builder.first + index, offset)
                rest = [record for record in found if record[1] >= start]
                assert read_all(RecordReader(source, start)) == rest


@given(layouts, records, st.data())
def test_a_record_without_its_end_waits_for_it(layout, wanted, data):
    with built(layout, wanted) as (source, found, builder):
        ends = chunk_ends(source, builder)
        source.limit = data.draw(st.sampled_from(ends)) if ends else None
        reader = RecordReader(source, Position(builder.first, 0))
        first = read_all(reader)
        assert first == found[: len(first)]
        here = reader.position
        assert reader.next() is None
        assert reader.position == here
        source.limit = None
        assert first + read_all(reader) == found


def chunk_ends(source, builder):
    """Return the places behind all chunks, and so in the middle of all records."""
    ends = []
    for index, image in enumerate(builder.files):
        for start in range(builder.page_size, len(image), builder.page_size):
            place = 0
            while place <= builder.page_size - 8 and image[start + place] not in (0, 0xFF):
                place += 3 + int.from_bytes(image[start + place + 1 : start + place + 3], "little")
                ends.append(Position(builder.first + index, start + place))
    return ends


def test_data_that_can_never_go_on_must_not_end_inside_a_record():
    layout = {"page_size": 512, "pages": 9, "interval": 0}
    with built(layout, [(1, 1600, 0)], directory=FinalDirectory) as (source, found, _):
        source.limit = Position(0, 2 * 512)
        reader = RecordReader(source, found[0][1])
        assert reader.next().type == RecordType.COMMIT
        with pytest.raises(FormatError, match="truncated in the middle of record"):
            reader.next()


def test_what_was_not_read_of_a_record_is_skipped():
    layout = {"page_size": 512, "pages": 9, "interval": 2}
    with built(layout, [(1, 1600, 0), (3, 1200, 0), (1, 5, 0)]) as (source, found, _):
        reader = RecordReader(source, Position(0, 512))
        seen = []
        while (record := reader.next()) is not None:
            if record.type not in NESTED:
                seen.append(record.position)
                next(record.rest(), None)
                if len(seen) < 3:
                    assert reader.position == found[len(seen)][1]
        assert seen == [place for _, place, _ in found]


def test_padding_inside_a_record_is_skipped(tmp_path):
    builder = BinlogBuilder(interval=0)
    builder.prepare_page()
    builder.chunk(0x03, b"ab")
    builder.chunk(0x44, b"\xff" * 9)
    builder.chunk(0xC3, b"cd")
    source = BinlogDirectory(OsDisk(), str(builder.write(tmp_path)))
    assert read_all(RecordReader(source, Position(0, 0))) == [(3, Position(0, 517), b"abcd")]


def test_a_nested_state_longer_than_a_page_does_not_end_the_record_around_it(tmp_path):
    builder = BinlogBuilder(pages=12, interval=0, states=False)
    builder.prepare_page()
    builder.chunk(0x01, b"a" * 505)
    builder.chunk(0x02, b"s" * 505)
    builder.chunk(0x82, b"s" * 505)
    builder.chunk(0xC2, b"s" * 5)
    builder.chunk(0x81, b"b" * 497)
    builder.chunk(0x42, b"t" * 505)
    builder.chunk(0xC1, b"c")
    source = BinlogDirectory(OsDisk(), str(builder.write(tmp_path)))
    whole = (1, Position(0, 512), b"a" * 505 + b"b" * 497 + b"c")
    assert read_all(RecordReader(source, Position(0, 512))) == [whole]
    for page in (2, 3, 4, 5, 6):  # in all of these only the end of the record is left
        assert read_all(RecordReader(source, Position(0, page * 512))) == []


@pytest.mark.parametrize(
    "chunks",
    [
        (0x01, 0x02, 0x42),  # inside a state that is nested
        (0x01, 0x02, 0x44),
        (0x01, 0x02, 0x81),  # the outer record goes on before the nested one has ended
        (0x01, 0x82),  # no nested state has begun
        (0x02, 0x42),  # inside a state that is not nested
        (0x03, 0x41),
    ],
)
def test_only_whole_states_and_padding_are_nested_and_not_in_themselves(tmp_path, chunks):
    builder = BinlogBuilder(interval=0, states=False)
    for type_byte in chunks:
        builder.chunk(type_byte, b"abcd")
    builder.chunk(chunks[0] | 0xC0, b"end")
    source = FinalDirectory(OsDisk(), str(builder.write(tmp_path)))
    record = RecordReader(source, Position(0, 0)).next()
    with pytest.raises(FormatError, match="Binlog record missing end chunk") as caught:
        list(record.rest())
    assert caught.value.offset == 7 * (len(chunks) - 1)


@pytest.mark.parametrize("left", [1, 2, 3])
def test_bytes_too_few_for_a_chunk_are_not_looked_at(tmp_path, left):
    builder = BinlogBuilder(interval=0, states=False)
    builder.chunk(0x41, b"x" * (builder.room - 3 - left))
    builder.bytes(b"\x41\xff\xff"[:left])
    builder.chunk(0x43, b"y")
    source = BinlogDirectory(OsDisk(), str(builder.write(tmp_path)))
    found = read_all(RecordReader(source, Position(0, 0)))
    assert [(kind, place.offset) for kind, place, _ in found] == [(1, 512), (3, 1024)]


def test_a_chunk_that_can_be_seen_in_part_cannot_be_seen(tmp_path):
    builder = BinlogBuilder(interval=0, states=False)
    first = builder.record(1, b"a" * 50)
    second = builder.record(1, b"b" * 50)
    source = BinlogDirectory(OsDisk(), str(builder.write(tmp_path)))
    reader = RecordReader(source, Position(0, 0))
    source.limit = Position(0, second.offset + 20)
    assert [place for _, place, _ in read_all(reader)] == [first]
    source.limit = None
    assert [place for _, place, _ in read_all(reader)] == [second]


def test_a_place_in_a_file_that_does_not_exist_yet_waits_for_it(tmp_path):
    path = tmp_path / "made"
    path.mkdir()
    source = BinlogDirectory(OsDisk(), str(path))
    reader = RecordReader(source, Position(0, 0))
    assert reader.next() is None
    assert reader.position == Position(0, 0)
    builder = BinlogBuilder(page_size=1024)
    place = builder.commit(Gtid(0, 1, 1))
    builder.write(path)
    source.refresh()
    assert [found[1] for found in read_all(reader)] == [place]


def test_the_end_of_a_full_file_leads_into_the_next_when_there_is_one(tmp_path):
    builder = BinlogBuilder(interval=0, pages=4)
    builder.record(RecordType.OOB, b"x" * 2000)
    end = Position(0, 4 * 512)
    source = BinlogDirectory(OsDisk(), str(builder.write(tmp_path)))
    source.limit = end
    reader = RecordReader(source, end)
    assert reader.next() is None
    source.limit = None
    assert reader.next().type == RecordType.GTID_STATE
    assert reader.position.file_no == 1
