"""
Damage to the files while a store has the directory open.

The damages are those of `verify/test_damage.py`, to files that another program wrote and a store
has taken over. The store goes on, and so do readers of the other files; readers of the damaged one
get what comes before the damage and an error that names the place. The check says the same as at
rest, word by word, and nobody changes the older files. Only where the store has taken over the end
of the files it has more to say of them, or less: `IN_USE` tells what, and why.
"""

import pytest

from ibb.protocol.errors import FormatError
from ibb.protocol.gtid import GtidPosition
from ibb.storage import Store
from ibb.storage.verify.finding import NOTHING

from .test_damage_at_opening import contents_of
from .verify import file_damages as files
from .verify import page_damages as pages
from .verify import record_damages as records
from .verify.binlog_to_damage import FILE1, FILE2, GROUPS_IN, bad_page
from .verify.file_damages import FILE3
from .verify.test_damage import DAMAGES, binlog
from .verify.verify_rig import SMALL, publish, report_of, reports

__all__ = ["binlog"]  # the fixture

OLD = list(range(1, 41))
IN_FILE2 = 30  # and all behind it; 29 ends there
OWN = 900  # the first group that the store writes


def not_closed(page_count=1):
    text = f"{page_count} pages are only in the redo log: the store is in use, or was not closed;"
    return report_of("not-closed", None, f"{text} opening it writes them")


def no_more(_binlog):
    return [not_closed()]


def last_page_is_not_written(_binlog):
    return [not_closed(2)]


def last_page_is_in_the_log(binlog):
    bad = bad_page(binlog, 2, 6, NOTHING)
    return [bad._replace(text=f"{bad.text}; the redo log has this page whole"), not_closed()]


def not_as_in_the_log(_binlog):
    text = "the page is not what the redo log says"
    return [report_of("redo-differs", FILE2, text, page=6), not_closed()]


def header_that_the_log_needs(_binlog):
    invalid = f"Invalid or corrupt file header in file '{FILE2}'"
    zero = f"{invalid}: it is zero, what follows is not"
    entry = "no format description record is at binlog-000003.ibb:521: the entry is ignored"
    return [
        report_of("redo-damaged", FILE2, invalid),
        report_of("header-zero", FILE2, zero, "0-1-29 at least", page=0),
        report_of("sidecar-entry", "formats.json", entry),
    ]


def page_of_the_store(binlog):
    return [bad_page(binlog, 3, 5, "unknown: no GTID state follows"), not_closed()]


IN_USE = {
    # The store has filled up the last page of file 2, cut the file behind it, and has that page in
    # its redo log: a page that is torn is whole there, one of zeros counts as not written yet, and
    # one that is valid is compared.
    pages.flip_a_bit_in_the_last_page: last_page_is_in_the_log,
    pages.zero_the_end_of_the_last_record: last_page_is_not_written,
    pages.write_behind_the_end: not_as_in_the_log,
    pages.chunk_past_the_last_page: not_as_in_the_log,
    # The page is not there any more. By the log the file ends before what was put behind it.
    pages.flip_a_bit_in_an_unused_page: no_more,
    # Without that header the log cannot be applied, and what is only there is not seen.
    files.header_of_zeros_in_the_newest_file: header_that_the_log_needs,
    # The store writes to file 3; its log tells where data ends, however many empty files follow.
    files.unused_file_with_a_set_bit: page_of_the_store,
    files.three_empty_files: no_more,
}


def read(store, after):
    """Return the groups behind sequence number *after*, and the error that ends them."""
    found = []
    position = GtidPosition.parse(f"0-1-{after}" if after else "")
    try:
        for group in store.reader(position):
            b"".join(group.pieces())
            if group.gtid is not None:
                found.append(group.gtid.seq)
    except FormatError as error:
        return found, error
    return found, None


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_a_store_and_readers_of_other_files_go_on(binlog, damage):
    with Store.open(binlog.path, SMALL) as store:
        publish(store, OWN)
        at_rest = damage(binlog)
        expected = IN_USE[damage](binlog) if damage in IN_USE else [*at_rest, not_closed()]
        before = contents_of(binlog.path)
        assert sorted(reports(binlog.path), key=str) == sorted(expected, key=str)
        publish(store, OWN + 1)
        assert read(store, 40) == ([OWN, OWN + 1], None)
        check_readers(store, at_rest, damage)
        store.switch_file()
        publish(store, OWN + 2)
        assert read(store, OWN) == ([OWN + 1, OWN + 2], None)
    after = contents_of(binlog.path)
    changed = {name for name in before if before[name] != after.get(name)}
    assert not changed & {f"binlog-00000{number}.ibb" for number in (0, 1, 2)}
    assert all(name.startswith(("binlog-", "ibb-redo-", "formats")) for name in changed)


def check_readers(store, at_rest, damage):
    """Check readers from the beginning and from behind the damage; *at_rest*: what it costs."""
    found, error = read(store, 0)
    if {one.file for one in at_rest} & {FILE2, FILE3}:
        readable = [*GROUPS_IN[0], *list(GROUPS_IN[1])[:-1]]  # the last one ends in file 2
        assert found[: len(readable)] == readable
        assert error is None or error.file in (FILE2, FILE3)
        return
    assert read(store, IN_FILE2) == ([*range(IN_FILE2 + 1, 41), OWN, OWN + 1], None)
    lost = [one.lost for one in at_rest if one.lost != NOTHING]
    if not lost or at_rest[0].kind == "event-length":  # for those who cut the bytes into events
        passed_over = {20} if damage is records.group_without_a_gtid else set()
        assert error is None
        assert found == [seq for seq in [*OLD, OWN, OWN + 1] if seq not in passed_over]
        return
    first_lost = int(lost[0].split("..")[0].removeprefix("0-1-"))
    assert found == list(range(1, first_lost))
    assert error.file == FILE1
    assert error.page is not None or "missing" in str(error)


def test_most_damages_are_of_an_older_file(binlog):
    with Store.open(binlog.path, SMALL) as store:
        assert store.pages.last_file() > 2
    assert len(DAMAGES) >= 100
    assert len(DAMAGES) == len(set(DAMAGES))
    assert set(IN_USE) < set(DAMAGES)
