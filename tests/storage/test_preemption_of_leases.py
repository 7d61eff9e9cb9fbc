"""Whoever comes in between finds leases and holds as they are."""

from contextlib import suppress

import pytest

from ibb.protocol.gtid import GtidPosition
from ibb.storage.directory import BinlogDirectory
from ibb.storage.errors import StoreFailed
from ibb.storage.holds import HoldKind, Holds
from ibb.storage.leases import Leases, Renewal

from ..faults.sim_disk import SimDisk
from .preemption import Meeting, meet_everywhere, swapped


class SteppedClock:
    time = 1.0

    def now(self):
        return self.time

    monotonic = now


def store_of_leases():
    disk = SimDisk()
    pages = BinlogDirectory(disk, "/s")
    clock = SteppedClock()
    leases = Leases(disk, "/s", clock, Holds().frozen, lambda: pages)
    leases.renew("old", GtidPosition(), age_limit=1.0)
    clock.time += 2.0
    return leases


def check_names(leases, *names):
    assert [lease.name for lease in leases.all()] == list(names)


def two_leases():
    leases = store_of_leases()
    return Meeting(
        lambda: leases.renew("a", GtidPosition()),
        lambda: leases.renew("b", GtidPosition()),
        lambda: check_names(leases, "a", "b", "old"),
    )


def a_lease_that_ends_and_another():
    leases = store_of_leases()
    return Meeting(
        lambda: leases.remove("old"),
        lambda: leases.renew("b", GtidPosition()),
        lambda: check_names(leases, "b"),
    )


def a_renewal_and_the_end():
    """Once a store is closed its files may be somebody else's."""
    leases, left = store_of_leases(), []

    def stored():
        return Leases(leases._disk, "/s", leases._clock, leases._frozen, leases._pages).all()

    def close():
        leases.close()
        left.append(stored())

    def renew():
        with suppress(StoreFailed):
            leases.renew("b", GtidPosition())

    def check():
        assert left == [stored()]

    return Meeting(renew, close, check)


def a_lease_that_lapses_and_another():
    leases = store_of_leases()
    return Meeting(
        leases.lapse,
        lambda: leases.renew("b", GtidPosition()),
        lambda: check_names(leases, "b", "old"),
    )


def leases_of_replicas_and_another():
    leases = store_of_leases()
    return Meeting(
        lambda: leases.renew_all([Renewal("a", GtidPosition(), None, "repl")]),
        lambda: leases.remove("old"),
        lambda: check_names(leases, "a"),
    )


def a_history_that_ends_and_a_lease_of_it():
    leases = store_of_leases()
    leases._leases["gone"] = leases.get("old")._replace(name="gone", position="0-1-1")
    return Meeting(
        leases.forget_history,
        lambda: leases.remove("old"),
        lambda: check_names(leases),
    )


def a_reader_begins_while_files_go():
    holds, files = Holds(), [0, 1]
    found = []

    def purge():
        with holds.frozen():
            if not holds.all():
                del files[0]

    def begin():
        found.append(holds.take(HoldKind.READER, "one", lambda: files[0]))

    def check():
        assert found[0].file_no >= files[0]

    return Meeting(begin, purge, check)


def a_hold_that_is_released_twice():
    holds = Holds()
    hold = holds.take(HoldKind.READER, "one", lambda: 0)
    holds.take(HoldKind.READER, "two", lambda: 0)

    def check():
        assert len(holds.all()) == 1

    return Meeting(hold.release, hold.release, check)


SCENES = [
    two_leases, a_lease_that_ends_and_another, a_lease_that_lapses_and_another,
    a_renewal_and_the_end,
    leases_of_replicas_and_another, a_history_that_ends_and_a_lease_of_it,
    a_reader_begins_while_files_go, a_hold_that_is_released_twice,
]  # fmt: skip


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.__name__)
@pytest.mark.parametrize("is_swapped", [False, True], ids=["", "swapped"])
def test_what_holds_files_is_whole(scene, is_swapped):
    assert meet_everywhere(lambda: swapped(scene()) if is_swapped else scene()) > 0
