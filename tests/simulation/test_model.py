"""What the model of a store accepts, and what it calls a broken promise."""

import pytest

from ibb.protocol.binlog_state import BinlogState
from ibb.protocol.gtid import Gtid
from ibb.storage.position import Position

from .model import Found, Item, Kind, Model, Seen, WrongError


def model_of(count, *, safe):
    """Return a model of groups that were all sent before the end of file 0."""
    model = Model()
    for number in range(1, count + 1):
        after, end = Position(0, 100 * number), Position(0, 100 * (number + 1))
        model.send(Item(Kind.GROUP, after, Gtid(0, 1, number), b"x", end=end))
    model.safe = model.kept = safe
    return model


def found(first_file, *numbers, last):
    """Return a store that has the groups *numbers*, and the state behind *last*."""
    stream = [
        Seen(Gtid(0, 1, number), b"x", Position(first_file, 100 * number)) for number in numbers
    ]
    state = BinlogState([Gtid(0, 1, last)] if last else [])
    return Found(first_file, stream, state, frozenset())


@pytest.mark.parametrize("last", [3, 4, 5])
def test_what_is_not_safe_may_be_lost_before_its_file_is_purged(last):
    assert model_of(5, safe=3).survivors(found(1, last=last), 3) == last


@pytest.mark.parametrize("last", [0, 2, 6])
def test_what_is_safe_is_in_the_state_also_where_all_was_purged(last):
    with pytest.raises(WrongError, match=r"expected between state '0-1-3'.* and state '0-1-5'"):
        model_of(5, safe=3).survivors(found(1, last=last), 3)


def test_a_stream_is_a_beginning_with_all_that_is_safe():
    model = model_of(5, safe=3)
    assert model.survivors(found(0, 1, 2, 3, 4, last=4), 3) == 4
    with pytest.raises(WrongError, match="group 0-1-3, item 2 of 3 safe, is lost"):
        model.survivors(found(0, 1, 2, last=2), 3)
    with pytest.raises(WrongError, match=r"0-1-3 at .* where 0-1-2 must be"):
        model.survivors(found(0, 1, 3, last=3), 3)
    with pytest.raises(WrongError, match="is missing at the beginning"):
        model.survivors(found(0, 2, 3, last=3), 3)
