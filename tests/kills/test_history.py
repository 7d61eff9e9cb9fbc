"""The comparison of the kill rounds notices what a broken store would do."""

import pytest

from ibb.storage.position import Position

from .history import History, Round, StoredGroup, WrongError

MESSAGES = (
    "try 0-1-1 aa", "done 0-1-1 0 100", "try 0-1-2 bb", "done 0-1-2 0 200", "try 0-1-3 cc",
)  # fmt: skip


def stored(seq: int, body: str) -> StoredGroup:
    return StoredGroup(f"0-1-{seq}", body, f"whole {body}", Position(0, seq * 100 - 50))


ALL = [stored(1, "aa"), stored(2, "bb"), stored(3, "cc")]


def told(*messages: str) -> Round:
    one = Round()
    for message in messages or MESSAGES:
        one.take(message.split())
    return one


@pytest.mark.parametrize(
    ("mode", "found", "state"),
    [(1, ALL, "0-1-3"), (1, ALL[:2], "0-1-2"), (0, ALL[:1], "0-1-1"), (0, [], "")],
)
def test_a_beginning_is_fine(mode: int, found: list[StoredGroup], state: str) -> None:
    history = History(mode)
    history.survived(told(), found, state, "-")
    assert history.check_reader(0, [(group.gtid, group.whole) for group in found]) == len(found)
    assert history.counts["lost"] == max(2 - len(found), 0)


@pytest.mark.parametrize(
    ("mode", "found", "state", "reason"),
    [
        (1, ALL[:1], "0-1-1", "acknowledged and lost"),
        (2, [], "", "acknowledged and lost"),
        (0, ALL[1:], "0-1-3", "lost from the middle"),
        (1, [ALL[1], ALL[0]], "0-1-2", "behind a group that was tried later"),
        (1, [*ALL, ALL[0]], "0-1-3", "twice"),
        (1, [*ALL, stored(4, "dd")], "0-1-4", "not what was committed"),
        (1, [ALL[0], stored(2, "xx")], "0-1-2", "not what was committed"),
        (1, ALL, "0-1-2", "a full scan gives 0-1-3"),
    ],
)
def test_every_broken_promise_is_noticed(
    mode: int, found: list[StoredGroup], state: str, reason: str
) -> None:
    with pytest.raises(WrongError, match=reason):
        History(mode).survived(told(), found, state, "-")


def test_what_was_there_stays_there() -> None:
    history = History(1)
    history.survived(told(), ALL, "0-1-3", "-")
    history.survived(told("try 0-1-4 dd"), ALL[1:], "0-1-3", "-")  # the first was purged
    with pytest.raises(WrongError, match="was there before and is lost"):
        history.survived(Round(), ALL[1:2], "0-1-3", "-")


@pytest.mark.parametrize(
    ("received", "reason"),
    [
        ([("0-1-1", "whole aa"), ("0-1-3", "whole cc")], "where 0-1-2 is"),
        ([("0-1-1", "whole xx")], "where 0-1-1 is"),
        (
            [(f"0-1-{seq}", f"whole {2 * letter}") for seq, letter in enumerate("abcd", 1)],
            "is lost",
        ),
    ],
)
def test_a_reader_with_anything_else_is_noticed(
    received: list[tuple[str, str]], reason: str
) -> None:
    history = History(1)
    history.survived(told(), ALL, "0-1-3", "-")
    with pytest.raises(WrongError, match=reason):
        history.check_reader(0, received)


@pytest.mark.parametrize(
    ("messages", "prepared", "reason"),
    [
        (("prepare 0-5 aa", "prepared 0-5"), "-", "are lost"),
        (("prepare 0-5 aa", "prepared 0-5", "end 0-5", "ended 0-5"), "0-5", "prepared again"),
        (("prepare 0-5 aa",), "0-6", "cannot be prepared"),
    ],
)
def test_prepared_transactions_are_as_acknowledged(
    messages: tuple[str, ...], prepared: str, reason: str
) -> None:
    with pytest.raises(WrongError, match=reason):
        History(1).survived(told(*messages), [], "", prepared)


def test_a_transaction_stays_prepared_over_several_lives() -> None:
    history = History(1)
    history.survived(told("prepare 0-5 aa", "prepared 0-5"), [], "", "0-5")
    history.survived(Round(), [], "", "0-5")
    with pytest.raises(WrongError, match="are lost"):
        history.survived(Round(), [], "", "-")
