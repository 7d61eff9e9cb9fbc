"""
What clients get of damaged files: each kind of damage of the corruption table, ibb-format 14.

The damages are those of `tests/storage/verify/test_damage.py`. Whatever the check says is lost ends
the dump with error 1236, which names the place, behind all groups before it and with no part of
another; whoever is behind the damage notices nothing. Both ways to make a dump say the same.
"""

import re

import pytest

from ibb.protocol.gtid import GtidPosition
from ibb.server.dump.dump_batch import Outcome
from ibb.storage.os_disk import OsDisk
from ibb.storage.read_only import ReadOnlyHistory
from ibb.storage.verify.finding import NOTHING

from ...storage.verify import record_damages as records
from ...storage.verify.binlog_to_damage import FILE1, FILE2, GROUPS_IN, write_binlog
from ...storage.verify.file_damages import FILE3
from ...storage.verify.test_damage import DAMAGES
from ...storage.verify.verify_rig import digest
from .made_streams import assert_same, request

pytestmark = pytest.mark.kernel


def dumped(path, after=""):
    """Return what a client gets that has *after*, by both ways to make it."""
    history = ReadOnlyHistory(OsDisk(), str(path))
    try:
        return assert_same(history, request(connect_state=GtidPosition.parse(after)))
    finally:
        history.close()


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """What a client gets of files without damage."""
    path = tmp_path_factory.mktemp("whole")
    write_binlog(path)
    return dumped(path)


# Neither is a row of the table. No dump passes a description without sense, wherever it begins (see
# below); a second GTID event inside a group is sent as any other event.
OTHERS = {records.format_description_without_sense, records.second_gtid_event}


@pytest.mark.parametrize(
    "damage",
    [damage for damage in DAMAGES if damage not in OTHERS],
    ids=lambda damage: damage.__name__,
)
def test_a_dump_ends_where_something_is_lost_and_nowhere_else(tmp_path, whole, damage):
    binlog = write_binlog(tmp_path)
    expected = damage(binlog)
    before = digest(tmp_path)
    made = dumped(tmp_path)
    if not {one.kind for one in expected} & {"event-length", "not-a-group"}:
        assert whole.data.startswith(made.data)
    newest = {one.file for one in expected} & {FILE2, FILE3}
    if newest:
        assert made.sent[0].seq >= GROUPS_IN[1][-2]
        assert made.error is None or re.match(
            rf"1236 .*file ({FILE2}|{FILE3}), page \d", made.error
        )
    else:
        check_older(made, whole, [one.lost for one in expected if one.lost != NOTHING])
        behind = dumped(tmp_path, f"0-1-{GROUPS_IN[2][0]}")
        assert (behind.outcome, behind.error, behind.sent) == (Outcome.IDLE, None, whole.sent)
    assert digest(tmp_path) == before


def check_older(made, whole, lost):
    """Check a dump over damage to an older file."""
    if lost:
        assert made.outcome is Outcome.END
        assert made.sent[0].seq == int(re.match(r"0-1-(\d+)", lost[0])[1]) - 1
        assert re.match(rf"1236 .*file {FILE1}(, page \d|\))", made.error)
    else:
        assert (made.outcome, made.error, made.sent) == (Outcome.IDLE, None, whole.sent)


def test_a_format_description_without_sense_is_named_wherever_a_dump_begins(tmp_path):
    (finding,) = records.format_description_without_sense(write_binlog(tmp_path))
    place = rf"{finding.file}:\d+: {re.escape(finding.text)}"
    at_it = dumped(tmp_path, f"0-1-{GROUPS_IN[1][0]}")
    assert re.search(rf"1236 .*format description at {place}", at_it.error)
    behind = dumped(tmp_path, f"0-1-{GROUPS_IN[2][-1]}")
    assert re.search(
        rf"1236 .*format description in force at [^:]+:\d+: {re.escape(finding.text)}",
        behind.error,
    )
    assert (at_it.outcome, behind.outcome) == (Outcome.END, Outcome.END)
