"""Damage to pages and to chunks: cases of the corruption table, ibb-format 14."""

from ibb.storage.position import Position
from ibb.storage.verify.finding import NOTHING

from .binlog_to_damage import FILE1, bad_page
from .verify_rig import SIZE, report_at, report_of

# Pages


def flip_a_bit(binlog):
    binlog.raw(Position(1, 3 * SIZE + 30), b"\x5a")
    return [bad_page(binlog, 1, 3, "0-1-19..21")]


def flip_a_bit_in_the_checksum(binlog):
    binlog.raw(Position(1, 4 * SIZE - 1), b"\x5a")
    return [bad_page(binlog, 1, 3, "0-1-19..21")]


def flip_a_bit_in_the_last_page(binlog):
    binlog.raw(Position(2, 6 * SIZE + 100), b"\x5a")
    return [bad_page(binlog, 2, 6, "0-1-40 at least")]


def flip_a_bit_in_the_last_page_but_one(binlog):
    binlog.raw(Position(2, 5 * SIZE + 300), b"\x5a")
    return [bad_page(binlog, 2, 5, "0-1-38..40")]


def flip_a_bit_in_an_unused_page(binlog):
    binlog.raw(Position(2, 7 * SIZE + 300), b"\x5a")
    return [bad_page(binlog, 2, 7, "unknown: no GTID state follows")]


def flip_bits_in_pages_one_behind_the_other(binlog):
    binlog.raw(Position(1, 3 * SIZE + 30), b"\x5a")
    binlog.raw(Position(1, 4 * SIZE + 30), b"\x5a")
    return [bad_page(binlog, 1, 3, "0-1-19..23"), bad_page(binlog, 1, 4, NOTHING)]


def flip_bits_in_pages_apart(binlog):
    binlog.raw(Position(1, 3 * SIZE + 30), b"\x5a")
    binlog.raw(Position(1, 5 * SIZE + 30), b"\x5a")
    return [bad_page(binlog, 1, 3, "0-1-19..21"), bad_page(binlog, 1, 5, "0-1-23..25")]


def zero_a_page(binlog):
    binlog.raw(Position(1, 3 * SIZE), bytes(SIZE))
    text = "page is all zero although page 4 is used"
    return [report_of("zero-page", FILE1, text, "0-1-19..21", page=3)]


def zero_two_pages(binlog):
    binlog.raw(Position(1, 3 * SIZE), bytes(2 * SIZE))
    text = "pages 3 to 4 are all zero although page 5 is used"
    return [report_of("zero-page", FILE1, text, "0-1-19..23", page=3)]


def zero_the_first_page(binlog):
    binlog.raw(Position(1, SIZE), bytes(SIZE))
    text = "page is all zero although page 2 is used"
    return [report_of("zero-page", FILE1, text, "0-1-15..17", page=1)]


def zero_the_rest_of_a_page(binlog):
    place = binlog.places[20]
    binlog.sealed(place, bytes(SIZE - 4 - place.offset % SIZE))
    text = "nothing is written here although page 4 is used"
    return [report_at("unused-bytes", place, text, "0-1-20..21")]


def zero_the_rest_of_a_file(binlog):
    """Data ends inside group 27; no page of the same file is used behind it."""
    binlog.raw(Position(1, 7 * SIZE), bytes(SIZE))
    place = (1, 7 * SIZE)
    truncated = "binlog tablespace truncated in the middle of record"
    early = "data ends here although a later file is used"
    return [
        report_at("truncated-record", place, truncated, "0-1-27..29"),
        report_at("data-ends-early", place, early),
    ]


def zero_the_end_of_the_last_record(binlog):
    """The newest file: its writer may have more of it, so a reader waits."""
    binlog.raw(Position(2, 6 * SIZE), bytes(SIZE))
    text = f"a record begins here, and data ends inside it at {Position(2, 6 * SIZE)}: its writer"
    text += " has more of it, or it is lost; a store that opens the directory goes on here"
    return [report_at("torn-end", binlog.places[40], text)]


def write_behind_the_end(binlog):
    end = binlog.builder.position
    binlog.sealed(Position(2, end.offset + 9), b"x")
    return [report_at("bytes-behind-end", end, "bytes behind the last chunk are not zero")]


# Chunks


def impossible_length(type_byte, length):
    return f"Invalid record of type 0x{type_byte:02x} (invalid chunk length {length})"


def empty_chunk(binlog):
    binlog.sealed(Position(1, 1635), bytes(2))
    text = impossible_length(0x41, 0)
    return [report_at("chunk-length", binlog.places[20], text, "0-1-20..21")]


def chunk_past_the_page(binlog):
    binlog.sealed(Position(1, 1635), b"\xff\xff")
    text = impossible_length(0x41, 65535)
    return [report_at("chunk-length", binlog.places[20], text, "0-1-20..21")]


def chunk_one_byte_past_the_page(binlog):
    room = SIZE - 4 - 1634 % SIZE - 3
    binlog.sealed(Position(1, 1635), (room + 1).to_bytes(2, "little"))
    text = impossible_length(0x41, room + 1)
    return [report_at("chunk-length", binlog.places[20], text, "0-1-20..21")]


def chunk_past_the_last_page(binlog):
    """The end of group 40, which begins in the page before, behind a state."""
    place = Position(2, 6 * SIZE + 9)
    binlog.sealed(Position(2, place.offset + 1), b"\xff\xff")
    return [report_at("chunk-length", place, impossible_length(0xC1, 65535), "0-1-40 at least")]


def type_zero_with_a_flag(binlog):
    binlog.sealed(binlog.places[20], b"\x40")
    return [report_at("chunk-type", binlog.places[20], "Invalid chunk type 0x40", "0-1-20..21")]


def type_63(binlog):
    binlog.sealed(binlog.places[20], b"\x7f")
    return [report_at("chunk-type", binlog.places[20], "Invalid chunk type 0x7f", "0-1-20..21")]


def continuation_without_a_start(binlog):
    binlog.sealed(binlog.places[20], b"\xc1")
    text = "Binlog record starts with continuation chunk"
    return [report_at("continuation", binlog.places[20], text, "0-1-20")]


MISSING_END = "Binlog record missing end chunk"


def start_inside_a_record(binlog):
    binlog.sealed(Position(1, 3 * SIZE), b"\x41")
    text = "commit record begins with neither a GTID event nor a format description"
    return [
        report_at("missing-end", (1, 3 * SIZE), MISSING_END, "0-1-19"),
        report_at("not-a-group", (1, 3 * SIZE), text),
    ]


def another_type_inside_a_record(binlog):
    binlog.sealed(Position(1, 3 * SIZE), b"\xc5")
    return [report_at("missing-end", (1, 3 * SIZE), MISSING_END, "0-1-19")]


def nested_record_that_is_not_ended(binlog):
    binlog.sealed(Position(1, 2 * SIZE), b"\x02")
    return [report_at("missing-end", (1, 2 * SIZE + 8), MISSING_END, "0-1-17")]


DAMAGES = [
    flip_a_bit,
    flip_a_bit_in_the_checksum,
    flip_a_bit_in_the_last_page,
    flip_a_bit_in_the_last_page_but_one,
    flip_a_bit_in_an_unused_page,
    flip_bits_in_pages_one_behind_the_other,
    flip_bits_in_pages_apart,
    zero_a_page,
    zero_two_pages,
    zero_the_first_page,
    zero_the_rest_of_a_page,
    zero_the_rest_of_a_file,
    zero_the_end_of_the_last_record,
    write_behind_the_end,
    empty_chunk,
    chunk_past_the_page,
    chunk_one_byte_past_the_page,
    chunk_past_the_last_page,
    type_zero_with_a_flag,
    type_63,
    continuation_without_a_start,
    start_inside_a_record,
    another_type_inside_a_record,
    nested_record_that_is_not_ended,
]
