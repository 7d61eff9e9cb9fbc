"""Two histories in one directory, one after the other, whose groups tell which one they are of."""

from ibb.protocol.gtid import Gtid
from ibb.storage import Store

from ..faults.sim_disk import SimDisk
from .events import transaction
from .preempted_store import OPTIONS

DIRECTORY = "/s"
GROUPS = 12


class TwoHistories:
    """A directory with the first one; `begin_anew` deletes it and writes the second."""

    def __init__(self, groups_in_a_file=2):
        self.disk = SimDisk()
        self._groups_in_a_file = groups_in_a_file
        with Store.open(DIRECTORY, OPTIONS, disk=self.disk) as store:
            fill(store, 1, groups_in_a_file)

    def begin_anew(self):
        with Store.open(DIRECTORY, OPTIONS, disk=self.disk) as store:
            store.reset()
            fill(store, 2, self._groups_in_a_file)


def fill(store, history, groups_in_a_file):
    """Write groups, some with pieces outside of their records, in files of a few groups each."""
    for seq in range(1, GROUPS + 1):
        with store.begin() as group:
            group.write(transaction(mark_of(history).decode() * 40))
            group.commit(Gtid(history, 1, seq))
        if seq % groups_in_a_file == 0:
            store.switch_file()


def mark_of(history):
    """Return what every group of a history has in it, many times."""
    return b"<history%d>" % history
