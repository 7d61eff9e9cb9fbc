"""
Damage to an older file while a store has the directory open.

The damages are those of `verify/test_damage.py`, to files that another program wrote and a store
has taken over. The store goes on, and so do readers of the other files; readers of the damaged one
get what comes before the damage and an error that names the place. The check says the same as at
rest, and nobody changes the older files.
"""

import pytest

from ibb.protocol.errors import FormatError
from ibb.protocol.gtid import GtidPosition
from ibb.storage import Store
from ibb.storage.verify.finding import NOTHING

from .test_damage_at_opening import contents_of
from .verify.test_damage import DAMAGES, FILE1, binlog
from .verify.verify_rig import SMALL, publish, told

__all__ = ["binlog"]  # the fixture

OLD = list(range(1, 41))
IN_FILE2 = 30  # and all behind it; 29 ends there
OWN = 900  # the first group that the store writes
NOT_CLOSED = ("not-closed", None, None, None, NOTHING)


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
        expected = damage(binlog)
        if any(file is None or FILE1 not in file for _, file, *_ in expected):
            expected = None  # of the newest files, which the store has ended in its own way
        before = contents_of(binlog.path)
        if expected is not None:
            assert sorted(told(binlog.path), key=str) == sorted([*expected, NOT_CLOSED], key=str)
        publish(store, OWN + 1)
        assert read(store, 40) == ([OWN, OWN + 1], None)
        if expected is not None:
            check_readers(store, [lost for *_, lost in expected if lost != NOTHING])
        store.switch_file()
        publish(store, OWN + 2)
        assert read(store, OWN) == ([OWN + 1, OWN + 2], None)
    after = contents_of(binlog.path)
    changed = {name for name in before if before[name] != after.get(name)}
    assert not changed & {f"binlog-00000{number}.ibb" for number in (0, 1, 2)}
    assert all(name.startswith(("binlog-", "ibb-redo-", "formats")) for name in changed)


def check_readers(store, lost):
    """Check readers from the beginning and from behind the damage; *lost* as the check has it."""
    assert read(store, IN_FILE2) == ([*range(IN_FILE2 + 1, 41), OWN, OWN + 1], None)
    found, error = read(store, 0)
    if not lost:
        assert (found, error) == ([*OLD, OWN, OWN + 1], None)
        return
    first_lost = int(lost[0].split("..")[0].removeprefix("0-1-"))
    assert found == list(range(1, first_lost))
    assert error.file == FILE1
    assert error.page is not None or "missing" in str(error)


def test_most_damages_are_of_an_older_file(binlog):
    with Store.open(binlog.path, SMALL) as store:
        assert store.pages.last_file() > 2
    assert len(DAMAGES) >= 43
