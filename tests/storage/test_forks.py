"""A child that is forked does nothing to the store of its parent."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PROLOGUE = """
import os, sys
from ibb.protocol.errors import IbbError
from ibb.protocol.gtid import Gtid
from ibb.storage import Store, StoreOptions
from ibb.storage.errors import StoreFailed
from tests.storage.events import transaction

OPTIONS = StoreOptions(redo_segment_size=4 << 20, max_binlog_size=1 << 20,
                       format_description="upstream")

def publish(store, first, last):
    for number in range(first, last + 1):
        with store.begin() as group:
            group.write(transaction("x"))
            group.commit(Gtid(0, 1, number))

def end_of(child):
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

path = sys.argv[1]
"""


def run(tmp_path, text):
    """Run a program that forks: one without the threads of the tests."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PROLOGUE + text, str(tmp_path / "s")],
        cwd=ROOT, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_what_the_parent_commits_behind_a_childs_end_is_there(tmp_path):
    """The child unwinds the same `with` as its parent; the parent is killed, so the log tells."""
    run(
        tmp_path,
        """
middle = os.fork()
if not middle:
    with Store.open(path, OPTIONS) as store:
        publish(store, 1, 10)
        child = os.fork()
        if not child:
            sys.exit(0)
        assert end_of(child) == 0
        publish(store, 11, 20)
        os._exit(0)
assert end_of(middle) == 0
with Store.open(path, OPTIONS) as store:
    assert store.state().seq(0, 1) == 20
    assert sum(group.gtid is not None for group in store.reader()) == 20
""",
    )


def test_a_child_is_told_that_the_store_is_not_its_own(tmp_path):
    said = run(
        tmp_path,
        """
with Store.open(path, OPTIONS) as store:
    publish(store, 1, 10)
    with store.begin() as group:
        group.write(transaction("x"))
        child = os.fork()
        if not child:
            for number, call in enumerate((
                lambda: group.commit(Gtid(0, 1, 11)),
                lambda: publish(store, 11, 11),
                store.switch_file,
                store.reset,
                lambda: store.purge_to("binlog-000000.ibb"),
                lambda: store.leases.renew("mine", "0-1-10"),
            )):
                try:
                    call()
                except StoreFailed as error:
                    assert "forked" in str(error) or "closed" in str(error), error
                    print(number, flush=True)
            store.close()
            os._exit(0)
        assert end_of(child) == 0
        group.commit(Gtid(0, 1, 11))
    publish(store, 12, 12)
with Store.open(path, OPTIONS) as store:
    assert store.state().seq(0, 1) == 12
    assert store.leases.all() == []
""",
    )
    assert said == [str(number) for number in range(6)]


def test_a_store_that_was_closed_can_be_opened_while_a_child_lives(tmp_path):
    run(
        tmp_path,
        """
reading, writing = os.pipe()
with Store.open(path, OPTIONS) as store:
    publish(store, 1, 1)
    child = os.fork()
    if not child:
        os.close(writing)
        os.read(reading, 1)
        os._exit(0)
with Store.open(path, OPTIONS) as store:
    publish(store, 2, 2)
os.close(writing)
assert end_of(child) == 0
""",
    )
