"""Which group an acknowledgement is for, also while more are asked for."""

import threading

from ibb.protocol.gtid import Gtid
from ibb.server.dump.asked_groups import ASKED_MAX, AskedGroup, AskedGroups
from ibb.storage.position import Position


def group(seq, place=None):
    return AskedGroup(place or (0, seq), Gtid(0, 1, seq), Position(0, seq))


def test_an_answer_is_for_the_last_group_that_it_covers_and_all_before():
    asked = AskedGroups()
    for seq in (10, 20, 30):
        asked.add(group(seq))
    assert asked.answered((0, 9)) is None
    assert asked.answered((0, 25)) == group(20)
    assert asked.answered((0, 25)) is None
    assert asked.answered((1, 4)) == group(30)


def test_the_oldest_is_forgotten_when_there_are_too_many():
    asked = AskedGroups()
    for seq in range(ASKED_MAX + 1):
        asked.add(group(seq))
    assert asked.answered((0, 0)) is None
    assert asked.answered((0, 1)) == group(1)


def test_one_that_is_asked_for_during_an_answer_makes_it_no_answer_to_a_later_group():
    asked = AskedGroups()
    asking = []

    class Looked(tuple):
        """A place; another group is asked for as soon as it was looked at."""

        __slots__ = ()

        def __le__(self, other):
            asking.append(threading.Thread(target=asked.add, args=(group(ASKED_MAX),)))
            asking[0].start()
            asking[0].join(0.2)
            return tuple.__le__(self, other)

    asked.add(group(0, Looked((0, 0))))
    for seq in range(1, ASKED_MAX):
        asked.add(group(seq))
    answered = asked.answered((0, 0))
    asking[0].join()
    assert answered.gtid == Gtid(0, 1, 0)
    assert asked.answered((0, ASKED_MAX)) == group(ASKED_MAX)
