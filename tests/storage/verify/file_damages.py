"""Damage to headers and to whole files, and odd names: cases of ibb-format 14."""

from ibb.storage.position import Position
from ibb.storage.verify.finding import NOTHING

from .binlog_to_damage import FILE1, FILE2, OF_FILE1
from .verify_rig import SIZE, report_at, report_of

FILE3 = "binlog-000003.ibb"  # made in advance, empty

# Headers


def in_header(kind, text, lost=OF_FILE1, file=FILE1):
    return report_of(kind, file, text, lost, page=0)


def invalid(file=FILE1):
    return f"Invalid or corrupt file header in file '{file}'"


def flip_a_bit_in_the_header(binlog):
    binlog.raw(Position(1, 30), b"\x5a")
    return [in_header("header-checksum", invalid())]


def wrong_magic(binlog):
    binlog.header(1, 0, b"\xff")
    return [in_header("header-magic", invalid())]


def unknown_version(binlog):
    binlog.header(1, 8, b"\x02")
    text = "Unsupported version of InnoDB binlog file, cannot read (version 2.0)"
    return [in_header("header-version", text)]


def page_size_too_large(binlog):
    binlog.header(1, 4, b"\x11")
    return [in_header("header-page-size", invalid())]


def page_size_too_small(binlog):
    binlog.header(1, 4, b"\x08")
    return [in_header("header-page-size", invalid())]


def wrong_file_number(binlog):
    binlog.header(1, 16, b"\x07")
    text = f"Inconsistent file header in file '{FILE1}', wrong file_no 7"
    return [in_header("header-file-number", text)]


def header_of_zeros(binlog):
    binlog.raw(Position(1, 0), bytes(SIZE))
    return [in_header("header-zero", f"{invalid()}: it is zero, what follows is not")]


def header_of_zeros_in_the_newest_file(binlog):
    binlog.raw(Position(2, 0), bytes(SIZE))
    text = f"{invalid(FILE2)}: it is zero, what follows is not"
    return [in_header("header-zero", text, "0-1-29 at least", FILE2)]


def reference_to_a_later_file(binlog):
    binlog.header(1, 48, b"\x09")
    lost = "oob pointer {} of the commit record {} leads below the oob reference 9 of the file"
    return [
        in_header(
            "header-reference", "oob reference 9 in the header leads to a later file", NOTHING
        ),
        report_at(
            "oob-tree",
            binlog.places[24],
            lost.format(binlog.nodes[4], binlog.places[24]),
            "0-1-24",
        ),
    ]


def lower_lsn(binlog):
    binlog.header(1, 32, b"\x05\0")
    text = "LSN 5 is lower than 1000 in binlog-000000.ibb"
    return [in_header("header-lsn", text, NOTHING)]


def header_with_more_fields(binlog):
    binlog.header(1, 100, b"x")
    text = "bytes behind the header's fields are not zero"
    return [in_header("header-extra", text, NOTHING)]


# Files


def file_is_missing(binlog):
    binlog.file(1).unlink()
    return [report_of("missing-file", FILE1, "the file is missing", OF_FILE1)]


def file_is_empty(binlog):
    binlog.raw(Position(1, 0), bytes(8 * SIZE))
    text = "the file is empty although later ones are not"
    return [report_of("empty-file", FILE1, text, OF_FILE1)]


def append(binlog, file_no, data):
    with binlog.file(file_no).open("ab") as file:
        file.write(data)


def file_has_half_a_page_more(binlog):
    append(binlog, 1, b"half a page")
    return [report_of("odd-length", FILE1, "11 bytes behind the last whole page")]


def newest_file_has_half_a_page_more(binlog):
    """Its writer may be about to write the rest."""
    append(binlog, 2, b"half a page")
    return []


def file_made_in_advance_has_half_a_page_more(binlog):
    append(binlog, 3, bytes(11))
    return []


def file_is_cut_to_its_header(binlog):
    binlog.file(1).write_bytes(binlog.file(1).read_bytes()[:SIZE])
    return [report_of("file-too-short", FILE1, "file too short: 512 bytes", OF_FILE1)]


def file_is_cut_inside_its_header(binlog):
    binlog.file(1).write_bytes(binlog.file(1).read_bytes()[:300])
    return [in_header("file-too-short", invalid())]


def file_is_cut_between_pages(binlog):
    """FLUSH cuts files too, but not inside a record; the next file begins with the end of 29."""
    binlog.file(1).write_bytes(binlog.file(1).read_bytes()[: 6 * SIZE])
    text = "binlog tablespace truncated in the middle of record"
    return [report_at("truncated-record", (1, 6 * SIZE), text, "0-1-25..29")]


def unused_file_with_a_set_bit(binlog):
    binlog.raw(Position(3, 5000 - 2000), b"\x01")
    text = f"{invalid(FILE3)}: it is zero, what follows is not"
    return [in_header("header-zero", text, "unknown: no GTID state follows", FILE3)]


def three_empty_files(binlog):
    for number in (4, 5):
        binlog.file(number).write_bytes(bytes(8 * SIZE))
    return [report_of("newest-empty", FILE3, "Last 3 binlog tablespace files are all empty")]


# Names


def misspelt(binlog, name, data):
    """Put a file beside the others under a name in another spelling."""
    (binlog.path / name).write_bytes(data)
    text = "not the canonical spelling of a binlog file's name: ignored"
    return [report_of("misspelt-name", name, text)]


def misspelt_name(binlog):
    return misspelt(binlog, "binlog-7.ibb", b"?")


def the_same_number_without_zeros(binlog):
    return misspelt(binlog, "binlog-1.ibb", binlog.file(2).read_bytes())


def the_same_number_with_too_few_zeros(binlog):
    return misspelt(binlog, "binlog-01.ibb", b"?" * 8 * SIZE)


def the_same_number_with_too_many_zeros(binlog):
    return misspelt(binlog, "binlog-0000001.ibb", binlog.file(1).read_bytes())


def copy_set_aside(binlog):
    name = f"{FILE1}.aside-0"
    (binlog.path / name).write_bytes(b"?")
    text = f"a recovery cleared something in {FILE1} and kept this copy"
    return [report_of("set-aside", name, text)]


DAMAGES = [
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
    newest_file_has_half_a_page_more,
    file_made_in_advance_has_half_a_page_more,
    file_is_cut_to_its_header,
    file_is_cut_inside_its_header,
    file_is_cut_between_pages,
    unused_file_with_a_set_bit,
    three_empty_files,
    misspelt_name,
    the_same_number_without_zeros,
    the_same_number_with_too_few_zeros,
    the_same_number_with_too_many_zeros,
    copy_set_aside,
]
