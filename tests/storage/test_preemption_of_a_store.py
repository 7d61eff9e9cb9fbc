"""Whoever comes in between finds a whole store: the write lock."""

from contextlib import suppress

import pytest

from ibb.protocol.binlog_state import BinlogState
from ibb.protocol.format_description import FormatDescription
from ibb.protocol.gtid import Gtid
from ibb.protocol.gtid_event import GtidEvent
from ibb.storage import Store
from ibb.storage.errors import DomainInUse, GroupError, StoreBusy, StoreFailed, StoreNotEmpty
from ibb.storage.holds import HoldKind
from ibb.storage.record import Xid

from .events import transaction
from .preempted_store import OPTIONS, Scene
from .preemption import Meeting, meet_everywhere, swapped
from .runs import run_of

NAME = Xid(1, b"name", b"b")
STOPS_MAX = 40
WRITING = ("/store.py", "/engine.py", "/group_committer.py", "/writer.py", "/file_pins.py")


def two_commits():
    scene = Scene()
    return Meeting(lambda: scene.commit(1, 1), lambda: scene.commit(2, 1, 3000), scene.check)


def run_of_groups(scene, domain):
    """Return how to commit some groups at once."""
    gtids = [Gtid(domain, 1, seq) for seq in range(1, 5)]
    run = run_of(GtidEvent(gtid, 5, 0x0C).encode() + transaction("r" * 200) for gtid in gtids)
    assert run.count == len(gtids)

    def commit():
        scene.store.wait_for(scene.store.commit_run(run))
        scene.committed += gtids

    return commit


def two_runs_of_groups():
    scene = Scene()
    return Meeting(run_of_groups(scene, 1), run_of_groups(scene, 2), scene.check)


def a_run_of_groups_and_a_switch():
    scene = Scene()
    return Meeting(run_of_groups(scene, 1), scene.store.switch_file, scene.check)


def a_commit_and_a_switch():
    scene = Scene()
    return Meeting(lambda: scene.commit(1, 1, 3000), scene.store.switch_file, scene.check)


def a_switch_and_a_commit():
    scene = Scene()
    return Meeting(scene.store.switch_file, lambda: scene.commit(1, 1), scene.check)


def a_format_description_and_a_commit():
    scene = Scene()
    event = FormatDescription.default("11.8.2-MariaDB", 7, 1).to_store()

    def check():
        scene.store.sync()
        assert scene.store.formats.in_force(scene.store.end()) == event
        scene.check()

    return Meeting(
        lambda: scene.store.write_format_description(event), lambda: scene.commit(1, 1), check
    )


def one_of_two(*calls):
    """Return the calls such that at most one may succeed, and the check of that."""
    won = []

    def attempt(call):
        with suppress(GroupError):
            won.append(call())

    return [lambda call=call: attempt(call) for call in calls], won


def two_transactions_of_one_name():
    scene = Scene()
    prepare = lambda: scene.prepare(NAME)  # noqa: E731
    calls, won = one_of_two(prepare, prepare)

    def check():
        assert len(won) == 1
        scene.store.rollback_prepared(NAME)
        scene.check()

    return Meeting(*calls, check)


def two_ends_of_one_transaction():
    scene = Scene()
    scene.prepare(NAME)
    calls, won = one_of_two(
        lambda: scene.store.commit_prepared(NAME, Gtid(1, 1, 1)),
        lambda: scene.store.rollback_prepared(NAME),
    )

    def check():
        assert len(won) == 1
        if won[0] is not None:
            scene.committed.append(Gtid(1, 1, 1))
        scene.check()

    return Meeting(*calls, check)


def a_transaction_given_up_and_a_commit():
    scene = Scene()
    group = scene.store.begin()
    group.write(transaction("y" * 1000))
    return Meeting(group.rollback, lambda: scene.commit(1, 1), scene.check)


def a_reset_and_a_commit():
    scene = Scene()

    def reset():
        with suppress(StoreBusy):
            scene.store.reset(BinlogState([Gtid(7, 1, 1)]))
            scene.committed.clear()

    def check():
        scene.committed = [group.gtid for group in scene.store.reader() if group.gtid is not None]
        state = scene.store.state()
        assert len(scene.committed) in (0, 1, 3)
        assert all(state.contains(gtid) for gtid in scene.committed)
        assert (len(scene.committed) == 3) == (state.seq(7, 1) is None)
        scene.check()

    return Meeting(reset, lambda: scene.commit(1, 1), check)


def a_reset_and_the_wait_of_a_commit():
    scene = Scene()
    with scene.store.begin() as group:
        group.write(transaction("z" * 300))
        position = group.commit(Gtid(1, 1, 1), wait=False)

    def reset():
        scene.store.reset()
        scene.committed.clear()

    return Meeting(reset, lambda: scene.store.wait_for(position), scene.check)


def a_reset_and_a_reader():
    scene = Scene()
    scene.store._engine.settle()
    scene.store.purge_to("binlog-000001.ibb")
    was_reset, held = [], []

    def reset():
        with suppress(StoreBusy):
            scene.store.reset()
            was_reset.append(True)

    def check():
        assert held[0].file_no == (0 if was_reset else 1), "files went from under a reader"

    hold = lambda: held.append(scene.store.hold(HoldKind.READER, "one"))  # noqa: E731
    return Meeting(reset, hold, check)


def a_domain_that_is_forgotten_and_its_next_group():
    scene = Scene()
    scene.store.reset(BinlogState([Gtid(9, 1, 1)]))
    scene.committed.clear()

    def forget():
        with suppress(DomainInUse):
            scene.store.switch_file([9])

    def check():
        assert scene.store.state().seq(9, 1) == 2
        scene.check()

    return Meeting(forget, lambda: scene.commit(9, 2), check)


def a_piece_and_a_reset():
    scene = Scene()
    group = scene.store.begin()

    def reset():
        with suppress(StoreBusy):
            scene.store.reset()
            scene.committed.clear()

    def check():
        writer = scene.store._engine.writer
        assert writer.pins.lowest() == writer.file_no, "its files may go"
        group.rollback()
        scene.check()

    return Meeting(lambda: group.write(transaction("y" * 200)), reset, check)  # one piece


class Gate:
    """Learns of the commits in the order in which they are written."""

    def __init__(self):
        self.positions = []

    def expect(self, gtid):
        """Nothing is expected."""

    def written(self, position):
        self.positions.append((position.file_no, position.offset))

    def wait(self, position):
        """Nobody has to wait."""


def two_commits_at_a_gate():
    scene = Scene()
    gate = scene.store.commits.gate = Gate()

    def check():
        assert len(gate.positions) == 2
        assert gate.positions == sorted(gate.positions)
        scene.check()

    return Meeting(lambda: scene.commit(1, 1), lambda: scene.commit(2, 1), check)


def a_commit_and_a_close():
    return swapped(a_close_and_a_commit())


def a_state_that_is_set_and_a_commit():
    scene = Scene()
    scene.store.reset()
    scene.committed.clear()

    def set_state():
        with suppress(StoreNotEmpty, StoreBusy):
            scene.store.set_binlog_state(BinlogState([Gtid(7, 1, 1)]))

    return Meeting(set_state, lambda: scene.commit(1, 1), scene.check)


def a_backup_and_a_commit():
    scene = Scene()
    backups = []

    def check():
        (backup,) = backups
        with Store.open("/copy", OPTIONS, disk=scene.disk) as copy:
            assert str(copy.state()) == str(backup.state)
            found = [group.gtid for group in copy.reader() if group.gtid is not None]
            assert all(backup.state.contains(gtid) for gtid in found)
            assert len(found) == len(list(backup.state.domains())) + 1
        scene.check()

    return Meeting(
        lambda: backups.append(scene.store.backup("/copy")), lambda: scene.commit(1, 1), check
    )


def a_close_and_a_commit():
    scene = Scene()

    def commit():
        with suppress(StoreFailed):
            scene.commit(1, 1)

    return Meeting(scene.store.close, commit, scene.check)


def two_closes():
    scene = Scene()
    return Meeting(scene.store.close, scene.store.close, scene.check)


def three_files():
    """Return a scene in which the first two of its files may go."""
    scene = Scene()
    scene.store.switch_file()
    scene.store._engine.settle()
    return scene


def a_purge_and_a_reader():
    scene = three_files()
    held = []

    def check():
        assert held[0].file_no >= scene.store.pages.first_file()

    return Meeting(
        lambda: scene.store.purge_to("binlog-000002.ibb"),
        lambda: held.append(scene.store.hold(HoldKind.READER, "one")),
        check,
    )


def two_purges():
    scene = three_files()
    purged = []

    def purge():
        purged.extend(scene.store.purge_to("binlog-000002.ibb").removed)

    def check():
        scene.committed.clear()
        assert len(purged) == 2, "a file was purged twice, or not at all"
        scene.check()

    return Meeting(purge, purge, check)


WRITERS = [
    two_commits, two_runs_of_groups, a_run_of_groups_and_a_switch,
    a_commit_and_a_switch, a_switch_and_a_commit, a_format_description_and_a_commit,
    two_transactions_of_one_name, two_ends_of_one_transaction, a_transaction_given_up_and_a_commit,
    a_reset_and_a_commit, a_reset_and_the_wait_of_a_commit, a_state_that_is_set_and_a_commit,
    a_backup_and_a_commit,
    a_close_and_a_commit, a_commit_and_a_close, two_closes, a_purge_and_a_reader,
    two_commits_at_a_gate, a_reset_and_a_reader,
    a_domain_that_is_forgotten_and_its_next_group,
]  # fmt: skip


@pytest.mark.parametrize("scene", WRITERS, ids=lambda scene: scene.__name__)
def test_nobody_writes_in_between(scene):
    assert meet_everywhere(scene, stops=STOPS_MAX, within=WRITING) > 0


def test_the_files_of_a_piece_are_kept_where_it_was_written():
    within = ("/group_committer.py", "/file_pins.py")
    assert meet_everywhere(a_piece_and_a_reset, within=within) > 0


def test_each_file_is_purged_once():
    assert meet_everywhere(two_purges, within=("/purge.py",)) > 0
