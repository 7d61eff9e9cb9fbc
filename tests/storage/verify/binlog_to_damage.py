"""
The binlog that the kinds of damage are done to, and words that many reports of them share.

Forty groups of 242 bytes in three files of eight pages, a state on every other page. Of file 1
(0-1-N at its offset): 16 at 644, 17 at 886, 18 at 1143, 19 at 1385, 20 at 1634, 21 at 1876, 22 at
2133, 23 at 2375, 24 at 2624, 25 at 2866, ..., 29 at 3856. Group 20 lies in one page. Group 22 is
smaller, and a piece of no group takes the rest of its place: what is put there costs no group.
Group 24 has five pieces, all in page 5, before its commit record. File 2 ends in group 40, at 3253.
"""

from ibb.storage.file_name import binlog_name

from .verify_rig import SIZE, Binlog, report_of

FILE1 = "binlog-000001.ibb"
FILE2 = "binlog-000002.ibb"
OF_FILE1 = "0-1-15..29"  # the groups of which any byte is in file 1
GROUP_BYTES = 242
SPARE_BYTES = 100  # of the piece of no group
GROUPS_IN = {0: range(1, 16), 1: range(16, 30), 2: range(30, 41)}  # groups by where they begin


def write_binlog(path):
    """Write the binlog; return it."""
    made = Binlog(path).groups(21).groups(1, 100).spare(SPARE_BYTES - 3).groups(1)
    made.large_group((20, 30, 78, 10, 10)).groups(16).write()
    assert made.places[20] == (1, 1634)
    assert made.spare_place == (1, 2275)
    assert [node.offset for node in made.nodes] == [2624, 2652, 2691, 2779, 2798]
    assert made.places[24] == (1, 2817)
    assert made.places[25] == (1, 2866)
    assert made.places[29] == (1, 3856)
    assert made.places[30].file_no == 2
    assert made.builder.position == (2, 3253)
    return made


def bad_page(binlog, file_no, page, lost):
    """Return the report of a page that does not agree with the checksum that it holds."""
    image = binlog.file(file_no).read_bytes()
    stored = int.from_bytes(image[(page + 1) * SIZE - 4 : (page + 1) * SIZE], "little")
    text = f"Page corruption in binlog tablespace file page number {page}"
    text += f" (invalid crc32 checksum 0x{stored:08X})"
    return report_of("page-checksum", binlog_name(file_no), text, lost, page=page)
