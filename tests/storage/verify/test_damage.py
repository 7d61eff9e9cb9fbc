"""
Each kind of damage: what the check says of it, where, and what is lost.

The cases are those of the corruption table, ibb-format 14. Every case also shows that the check
changes nothing, and that files without a finding can be read to their ends.
"""

import pytest

from ibb.protocol import compint
from ibb.storage.file_name import binlog_name
from ibb.storage.position import Position
from ibb.storage.verify.finding import NOTHING

from .verify_rig import SIZE, Binlog, at, count_records, told

FILE1 = "binlog-000001.ibb"
FILE2 = "binlog-000002.ibb"
OF_FILE1 = "0-1-15..29"  # the groups of which any byte is in file 1


@pytest.fixture
def binlog(tmp_path):
    """
    Forty groups of 242 bytes in three files of eight pages, a state on every other page.

    Of file 1 (0-1-N at its offset): 16 at 644, 17 at 886, 18 at 1143, 19 at 1385, 20 at 1634, 21
    at 1876, 22 at 2133, 23 at 2375, 24 at 2624, 25 at 2866, ..., 29 at 3856.
    """
    made = Binlog(tmp_path).groups(40).write()
    assert made.places[20] == (1, 1634)
    assert made.places[29] == (1, 3856)
    return made


# Pages


def flip_a_bit(binlog):
    binlog.raw(Position(1, 3 * SIZE + 30), b"\x5a")
    return [("page-checksum", FILE1, 3, None, "0-1-19..21")]


def flip_a_bit_in_the_checksum(binlog):
    binlog.raw(Position(1, 4 * SIZE - 1), b"\x5a")
    return [("page-checksum", FILE1, 3, None, "0-1-19..21")]


def flip_a_bit_in_the_last_page(binlog):
    binlog.raw(Position(2, 5 * SIZE + 300), b"\x5a")
    return [("page-checksum", FILE2, 5, None, "0-1-38..40")]


def flip_a_bit_in_an_unused_page(binlog):
    binlog.raw(Position(2, 7 * SIZE + 300), b"\x5a")
    return [("page-checksum", FILE2, 7, None, "unknown: no GTID state follows")]


def flip_bits_in_pages_one_behind_the_other(binlog):
    binlog.raw(Position(1, 3 * SIZE + 30), b"\x5a")
    binlog.raw(Position(1, 4 * SIZE + 30), b"\x5a")
    return [
        ("page-checksum", FILE1, 3, None, "0-1-19..23"),
        ("page-checksum", FILE1, 4, None, NOTHING),
    ]


def flip_bits_in_pages_apart(binlog):
    binlog.raw(Position(1, 3 * SIZE + 30), b"\x5a")
    binlog.raw(Position(1, 5 * SIZE + 30), b"\x5a")
    return [
        ("page-checksum", FILE1, 3, None, "0-1-19..21"),
        ("page-checksum", FILE1, 5, None, "0-1-23..25"),
    ]


def zero_a_page(binlog):
    binlog.raw(Position(1, 3 * SIZE), bytes(SIZE))
    return [("zero-page", FILE1, 3, None, "0-1-19..21")]


def zero_two_pages(binlog):
    binlog.raw(Position(1, 3 * SIZE), bytes(2 * SIZE))
    return [("zero-page", FILE1, 3, None, "0-1-19..23")]


def zero_the_first_page(binlog):
    binlog.raw(Position(1, SIZE), bytes(SIZE))
    return [("zero-page", FILE1, 1, None, "0-1-15..17")]


def zero_the_rest_of_a_page(binlog):
    place = binlog.places[20]
    binlog.sealed(place, bytes(SIZE - 4 - place.offset % SIZE))
    return [at("unused-bytes", place, "0-1-20..21")]


def write_behind_the_end(binlog):
    end = binlog.builder.position
    binlog.sealed(Position(2, end.offset + 9), b"x")
    return [at("bytes-behind-end", end)]


# Chunks


def empty_chunk(binlog):
    binlog.sealed(Position(1, 1635), bytes(2))
    return [at("chunk-length", binlog.places[20], "0-1-20..21")]


def chunk_past_the_page(binlog):
    binlog.sealed(Position(1, 1635), b"\xff\xff")
    return [at("chunk-length", binlog.places[20], "0-1-20..21")]


def type_zero_with_a_flag(binlog):
    binlog.sealed(binlog.places[20], b"\x40")
    return [at("chunk-type", binlog.places[20], "0-1-20..21")]


def type_63(binlog):
    binlog.sealed(binlog.places[20], b"\x7f")
    return [at("chunk-type", binlog.places[20], "0-1-20..21")]


def continuation_without_a_start(binlog):
    binlog.sealed(binlog.places[20], b"\xc1")
    return [at("continuation", binlog.places[20], "0-1-20")]


def start_inside_a_record(binlog):
    binlog.sealed(Position(1, 3 * SIZE), b"\x41")
    return [at("missing-end", (1, 3 * SIZE), "0-1-19"), at("not-a-group", (1, 3 * SIZE))]


def another_type_inside_a_record(binlog):
    binlog.sealed(Position(1, 3 * SIZE), b"\xc5")
    return [at("missing-end", (1, 3 * SIZE), "0-1-19")]


def nested_record_that_is_not_ended(binlog):
    binlog.sealed(Position(1, 2 * SIZE), b"\x02")
    return [at("missing-end", (1, 2 * SIZE + 8), "0-1-17")]


# Headers


def flip_a_bit_in_the_header(binlog):
    binlog.raw(Position(1, 30), b"\x5a")
    return [("header-checksum", FILE1, 0, None, OF_FILE1)]


def wrong_magic(binlog):
    binlog.header(1, 0, b"\xff")
    return [("header-magic", FILE1, 0, None, OF_FILE1)]


def unknown_version(binlog):
    binlog.header(1, 8, b"\x02")
    return [("header-version", FILE1, 0, None, OF_FILE1)]


def page_size_too_large(binlog):
    binlog.header(1, 4, b"\x11")
    return [("header-page-size", FILE1, 0, None, OF_FILE1)]


def page_size_too_small(binlog):
    binlog.header(1, 4, b"\x08")
    return [("header-page-size", FILE1, 0, None, OF_FILE1)]


def wrong_file_number(binlog):
    binlog.header(1, 16, b"\x07")
    return [("header-file-number", FILE1, 0, None, OF_FILE1)]


def header_of_zeros(binlog):
    binlog.raw(Position(1, 0), bytes(SIZE))
    return [("header-zero", FILE1, 0, None, OF_FILE1)]


def header_of_zeros_in_the_newest_file(binlog):
    binlog.raw(Position(2, 0), bytes(SIZE))
    return [("header-zero", FILE2, 0, None, "0-1-29 at least")]


def reference_to_a_later_file(binlog):
    binlog.header(1, 48, b"\x09")
    return [("header-reference", FILE1, 0, None, NOTHING)]


def lower_lsn(binlog):
    binlog.header(1, 32, b"\x05\0")
    return [("header-lsn", FILE1, 0, None, NOTHING)]


def header_with_more_fields(binlog):
    binlog.header(1, 100, b"x")
    return [("header-extra", FILE1, 0, None, NOTHING)]


# Files


def file_is_missing(binlog):
    binlog.file(1).unlink()
    return [("missing-file", FILE1, None, None, OF_FILE1)]


def file_is_empty(binlog):
    binlog.raw(Position(1, 0), bytes(8 * SIZE))
    return [("empty-file", FILE1, None, None, OF_FILE1)]


def file_has_half_a_page_more(binlog):
    with binlog.file(1).open("ab") as file:
        file.write(b"half a page")
    return [("odd-length", FILE1, None, None, NOTHING)]


def file_is_cut_to_its_header(binlog):
    binlog.file(1).write_bytes(binlog.file(1).read_bytes()[:SIZE])
    return [("file-too-short", FILE1, None, None, OF_FILE1)]


def file_is_cut_inside_its_header(binlog):
    binlog.file(1).write_bytes(binlog.file(1).read_bytes()[:300])
    return [("file-too-short", FILE1, 0, None, OF_FILE1)]


def file_is_cut_between_pages(binlog):
    """FLUSH cuts files too, but not inside a record; the next file begins with the end of 29."""
    binlog.file(1).write_bytes(binlog.file(1).read_bytes()[: 6 * SIZE])
    return [at("truncated-record", (1, 6 * SIZE), "0-1-25..29")]


def unused_file_with_a_set_bit(binlog):
    binlog.raw(Position(3, 5000 - 2000), b"\x01")
    return [("header-zero", "binlog-000003.ibb", 0, None, "unknown: no GTID state follows")]


def three_empty_files(binlog):
    for number in (4, 5):
        binlog.file(number).write_bytes(bytes(8 * SIZE))
    return [("newest-empty", "binlog-000003.ibb", None, None, NOTHING)]


def misspelt_name(binlog):
    (binlog.path / "binlog-7.ibb").write_bytes(b"?")
    return [("misspelt-name", "binlog-7.ibb", None, None, NOTHING)]


def copy_set_aside(binlog):
    (binlog.path / f"{FILE1}.aside-0").write_bytes(b"?")
    return [("set-aside", f"{FILE1}.aside-0", None, None, NOTHING)]


# States


def state_with_fewer_entries_than_it_counts(binlog):
    binlog.sealed(Position(1, 4 * SIZE + 3), b"\x40")
    return [at("state-record", (1, 4 * SIZE))]


def state_with_a_lower_number(binlog):
    image = binlog.file(1).read_bytes()
    at_entry = 4 * SIZE + 3 + 4
    assert compint.decode(image, at_entry)[0] == 21
    binlog.sealed(Position(1, at_entry), compint.encode(20))
    return [at("state-differs", (1, 4 * SIZE))]


def state_with_another_server(binlog):
    binlog.sealed(Position(1, 4 * SIZE + 3 + 3), compint.encode(2))
    return [at("state-differs", (1, 4 * SIZE))]


DAMAGES = [
    flip_a_bit,
    flip_a_bit_in_the_checksum,
    flip_a_bit_in_the_last_page,
    flip_a_bit_in_an_unused_page,
    flip_bits_in_pages_one_behind_the_other,
    flip_bits_in_pages_apart,
    zero_a_page,
    zero_two_pages,
    zero_the_first_page,
    zero_the_rest_of_a_page,
    write_behind_the_end,
    empty_chunk,
    chunk_past_the_page,
    type_zero_with_a_flag,
    type_63,
    continuation_without_a_start,
    start_inside_a_record,
    another_type_inside_a_record,
    nested_record_that_is_not_ended,
    flip_a_bit_in_the_header,
    wrong_magic,
    unknown_version,
    page_size_too_large,
    page_size_too_small,
    wrong_file_number,
    header_of_zeros,
    header_of_zeros_in_the_newest_file,
    reference_to_a_later_file,
    lower_lsn,
    header_with_more_fields,
    file_is_missing,
    file_is_empty,
    file_has_half_a_page_more,
    file_is_cut_to_its_header,
    file_is_cut_inside_its_header,
    file_is_cut_between_pages,
    unused_file_with_a_set_bit,
    three_empty_files,
    misspelt_name,
    copy_set_aside,
    state_with_fewer_entries_than_it_counts,
    state_with_a_lower_number,
    state_with_another_server,
]


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_damage_of_plain_files(binlog, damage):
    expected = damage(binlog)
    found = told(binlog.path)
    assert found == expected
    for file_no in range(3):
        if not any(name == binlog_name(file_no) for _, name, *_ in found):
            assert count_records(binlog.path, file_no) > 10
