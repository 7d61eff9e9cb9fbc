"""Counts of sessions, as they come, log in, read and go in any order."""

import random
from dataclasses import dataclass

from ibb.server.session_table import SessionTable


@dataclass(frozen=True)
class Login:
    user: str
    host: str


@dataclass(eq=False)
class Someone:
    id: int
    limit_key: str
    account: Login | None = None
    dump: int | None = None


def change(rng, table, one):
    """Do one thing that a session does."""
    what = rng.choice(("log in", "log out", "dump", "leave dump"))
    if what == "dump" and one.dump is None:
        one.dump = rng.randrange(3)
        table.begins_dump(one, one.dump)
    elif what == "leave dump" and one.dump is not None:
        table.ends_dump(one, one.dump)
        one.dump = None
    elif what.startswith("log"):
        account = Login(rng.choice("ab"), rng.choice("xy")) if what == "log in" else None
        table.becomes(one, account)
        one.account = account


def check(table, there):
    assert list(table) == there
    assert len(table) == len(there)
    assert table.has_dumps == any(one.dump is not None for one in there)
    for key in "pqr":
        near = [one for one in there if one.limit_key == key]
        assert table.near(key) == (len(near), sum(one.account is None for one in near))
    for account in (Login(user, host) for user in "ab" for host in "xy"):
        assert table.with_account(account) == sum(one.account == account for one in there)
    for number in range(3):
        found = sorted(table.dumps_of(number), key=lambda one: one.id)
        assert found == [one for one in there if one.dump == number]


def test_counts_are_those_of_the_sessions_that_are_there():
    rng, table, there = random.Random(1), SessionTable(), []
    for number in range(2000):
        if rng.random() < 0.3:
            one = Someone(number, rng.choice("pqr"))
            table.add(one)
            there.append(one)
            assert table.get(number) is one
        elif there and rng.random() < 0.3:
            one = there.pop(rng.randrange(len(there)))
            if one.dump is not None:
                table.ends_dump(one, one.dump)
            table.remove(one)
            assert table.get(one.id) is None
        elif there:
            change(rng, table, rng.choice(there))
        check(table, there)


def test_nothing_is_kept_of_who_has_gone():
    table = SessionTable()
    for number in range(100):
        one = Someone(number, f"address {number}")
        table.add(one)
        one.account = None
        table.becomes(one, Login(f"user {number}", "%"))
        one.account = Login(f"user {number}", "%")
        table.begins_dump(one, number)
        table.ends_dump(one, number)
        table.remove(one)
    kept = (table._sessions, table._near, table._strangers, table._accounts, table._dumps)
    assert not any(kept)


def test_who_comes_or_goes_while_all_are_gone_through_is_no_trouble():
    table = SessionTable()
    for number in range(5):
        table.add(Someone(number, "p"))
    seen = []
    for one in table:
        seen.append(one.id)
        table.remove(one)
        table.add(Someone(one.id + 10, "p"))
    assert seen == list(range(5))
    assert [one.id for one in table] == list(range(10, 15))
