"""What no kernel makes for the readers at the end: one of them makes it for all."""

import itertools

import pytest

from ibb.protocol.error_codes import MASTER_FATAL_ERROR_READING_BINLOG
from ibb.protocol.event import EventFlag
from ibb.protocol.format_description import FormatDescription
from ibb.protocol.gtid import Gtid, GtidPosition
from ibb.protocol.gtid_event import encode_gtid_event
from ibb.server.dump.dump_batch import Batch, Outcome
from ibb.server.dump.run_stream import RunStream
from ibb.server.dump.tail import MEMBER_REACH_BYTES, REACH_BYTES, REACH_BYTES_MAX
from ibb.storage.live_pages import LivePages

from ...storage.events import TIMESTAMP, query, rows_event, xid

pytestmark = pytest.mark.kernel


def restarted(crowd):
    description = FormatDescription.default("12.3.1", 1, 7)
    crowd.history.write_format_description(description.to_store())
    crowd.history.sync()


def interleaved(crowd):
    """Publish two groups whose pieces lie between one another, which no kernel makes."""
    number = 1 + max(gtid.seq for gtid in crowd.history.state().position())
    with crowd.history.begin() as one, crowd.history.begin() as other:
        for _ in range(4):
            for group in (one, other):
                group.write(query("a") + b"".join(rows_event(700) for _ in range(3)))
        for more, group in enumerate((one, other)):
            group.write(xid(number + more))
            group.commit(Gtid(0, 1, number + more))


def marked(event):
    """Return an event that clients may leave out."""
    flags = int.from_bytes(event[17:19], "little") | int(EventFlag.SKIP_REPLICATION)
    return event[:17] + flags.to_bytes(2, "little") + event[19:]


def switched(crowd):
    crowd.history.switch_file()


def nothing(_):
    pass


@pytest.mark.parametrize(
    ("before", "what"),
    [
        *itertools.product([nothing], [switched, restarted, interleaved]),
        *itertools.product([switched, restarted, interleaved], [restarted, interleaved]),
    ],
)
async def test_all_stay_and_get_what_each_gets_alone(crowd, monkeypatch, what, before):
    readers = crowd.at_end(5)
    with monkeypatch.context() as patch:
        made, next_batch = [], RunStream.next_batch
        patch.setattr(RunStream, "next_batch", lambda it: made.append(it) or next_batch(it))
        before(crowd)
        what(crowd)
        crowd.news()
        for number in range(1000, 1003):
            crowd.commit(number)
            crowd.news()
            assert all(one.member.at.position == crowd.history.end() for one in readers)
            assert all(one.member.reached()[0] == Gtid(0, 1, number) for one in readers)
        assert len(made) <= 4  # none was asked twice for the same
    for one in readers[1:3]:
        one.beat()
        one.leave()
    late = crowd.add()
    late.run()
    assert all(one.join() for one in (*readers[1:3], late))
    crowd.commit(1003)
    crowd.news()
    assert all(one.member.reached()[0].seq == 1003 for one in (*readers, late))
    crowd.check()


@pytest.mark.parametrize("what", [restarted, interleaved, switched])
async def test_what_stands_before_an_empty_file_is_left_to_threads(crowd, what):
    readers = crowd.at_end(3)
    what(crowd)
    switched(crowd)
    crowd.news()
    assert not any(one.member for one in readers)
    crowd.check()


async def test_no_file_is_kept_that_all_are_past(crowd):
    readers = crowd.at_end(3)
    first = crowd.history.end().file_no
    switched(crowd)
    crowd.news()
    assert {one.stream._hold.file_no for one in readers} == {first}  # no group is behind it
    crowd.commit(100)
    crowd.news()
    assert {one.stream._hold.file_no for one in readers} == {first + 1}
    for one in readers:
        assert one.stream.progress(one.member.at, GtidPosition()).held_file == first + 1
    crowd.check()


async def test_an_empty_file_costs_no_work_until_something_comes(crowd, monkeypatch):
    readers, made, next_batch = crowd.at_end(3), [], RunStream.next_batch
    monkeypatch.setattr(RunStream, "next_batch", lambda it: made.append(it) or next_batch(it))
    monkeypatch.setattr(crowd.history, "refresh", None)  # which waits for the disk
    switched(crowd)
    for _ in range(4):
        crowd.news()
    assert len(made) <= 1
    assert all(one.member for one in readers)
    monkeypatch.undo()
    crowd.commit(100)
    crowd.news()
    assert all(one.member.reached() == {0: Gtid(0, 1, 100)} for one in readers)
    crowd.check()


async def test_what_one_has_made_is_its_own_where_it_is_not_for_the_others(crowd):
    readers = crowd.at_end(3)
    before = [len(one.data) for one in readers]
    crowd.commit(100, 200_000)
    crowd.news()
    assert not any(one.member for one in readers)
    assert sum(one.stream.is_ahead for one in readers) == 1
    assert [len(one.data) for one in readers] == before
    crowd.check()


async def test_who_meets_an_end_is_told_and_the_others_find_out_themselves(crowd, monkeypatch):
    readers = crowd.at_end(3)
    error = MASTER_FATAL_ERROR_READING_BINLOG.error("bogus data in log event")
    switched(crowd)
    crowd.commit(100)
    with monkeypatch.context() as patch:
        patch.setattr(RunStream, "next_batch", lambda _: Batch(b"", Outcome.END, error))
        crowd.news()
    assert not any(one.member for one in readers)
    (told,) = (one for one in readers if one.stream.is_ahead)
    told.step()
    assert (told.outcome, told.error) == (Outcome.END, error)
    crowd.readers.remove(told)
    told.stream.close()
    crowd.check()


async def test_who_passes_through_a_file_alone_goes_on_where_it_was_sent_to(crowd):
    """A stream that was in another file, where much came, begins no group at the wrong place."""
    leaving, staying = crowd.at_end(2)
    for number in range(100, 103):
        crowd.commit(number, 20_000)
        crowd.news()
    switched(crowd)
    restarted(crowd)
    crowd.news()
    leaving.leave()
    crowd.commit(110)
    leaving.run()
    assert leaving.outcome is Outcome.IDLE
    crowd.news()
    assert staying.member.reached()[0].seq == 110
    crowd.check()


async def test_many_are_left_to_threads_later_than_a_few(crowd):
    many = REACH_BYTES // MEMBER_REACH_BYTES + 40
    readers = crowd.at_end(many)
    size = 20_000
    for number in range(REACH_BYTES // size + 1):
        crowd.commit(100 + number, size, wait=False)
    crowd.history.sync()
    crowd.news()
    assert all(one.member for one in readers)
    for one in readers[2:]:
        one.leave()
    for number in range(REACH_BYTES_MAX // size + 1):
        crowd.commit(1000 + number, size, wait=False)
    crowd.history.sync()
    crowd.news()
    assert not any(one.member for one in readers)
    crowd.check()


@pytest.mark.parametrize("what", [restarted, interleaved])
async def test_who_comes_late_lacks_nothing_where_those_that_had_it_began_anew(crowd, what):
    one, other = crowd.at_end(2)
    late = crowd.add()
    late.run()
    what(crowd)
    crowd.news()
    for reader in (one, other):
        reader.leave()
        reader.run()
    crowd.end_rest()
    assert one.join()
    late.join()
    other.join()
    crowd.commit(1000)
    crowd.news()
    crowd.check()


async def test_groups_of_which_nothing_is_sent_count_as_reached(crowd):
    readers = crowd.at_end(2, skip_marked=True)
    before = [len(one.data) for one in readers]
    with crowd.history.begin() as one, crowd.history.begin() as other:
        groups = [(Gtid(9, 1, 500), one), (Gtid(8, 1, 501), other)]
        for gtid, group in groups:
            group.write(marked(encode_gtid_event(gtid, TIMESTAMP, 4)))
        for _ in range(4):
            for _, group in groups:
                group.write(b"".join(marked(rows_event(700)) for _ in range(4)))
        for gtid, group in groups:
            group.write(marked(xid(gtid.seq)))
            group.commit(gtid)
    crowd.news()
    assert [len(one.data) for one in readers] == before
    for reader in readers:
        assert reader.member.at.position == crowd.history.end()
        assert {gtid.domain: gtid for gtid, _ in groups}.items() <= reader.member.reached().items()
    crowd.check()


async def test_what_no_kernel_makes_waits_until_it_is_seen_who_has_taken_the_rest(crowd):
    slow, other = crowd.at_end(2)
    before = slow.member.at
    slow.line.is_slow = True
    crowd.commit(500)
    restarted(crowd)
    crowd.news()
    assert (slow.member.at, slow.member.reached()) == (before, {})
    member = slow.member
    crowd.news()
    assert (member.at, member.reached(), member.unsent) == (before, {}, {0: Gtid(0, 1, 500)})
    assert member.last > before
    assert other.member.at.position == crowd.history.end()
    slow.look()
    crowd.check()


async def test_a_large_group_over_the_end_of_a_file_is_not_looked_through_each_time(
    crowd, monkeypatch
):
    readers, pages, read_page = crowd.at_end(3), [], LivePages.read_page
    monkeypatch.setattr(
        LivePages, "read_page", lambda self, *at: pages.append(at) or read_page(self, *at)
    )
    first, most = crowd.history.end().file_no, 0
    with crowd.history.begin() as group:
        group.write(query("a"))
        while crowd.history.end().file_no < first + 2:
            group.write(rows_event(60_000))
            crowd.history.sync()
            before = len(pages)
            crowd.news()
            most = max(most, len(pages) - before)
        group.write(xid(500))
        group.commit(Gtid(0, 1, 500))
    assert not any(one.member for one in readers)
    assert most <= 4 * REACH_BYTES // crowd.history.pages.header(first).page_size
    crowd.check()


@pytest.mark.parametrize("files", [1, 2])
async def test_many_groups_before_the_end_of_a_file_are_left_to_threads(crowd, files):
    readers = crowd.at_end(3)
    for number in range(REACH_BYTES // 15_000 + 2):
        crowd.commit(100 + number, 15_000, wait=False)
    for _ in range(files):
        switched(crowd)
    crowd.news()
    assert not any(one.member for one in readers)
    crowd.check()


async def test_all_are_dropped_where_making_it_fails(crowd, monkeypatch):
    readers = crowd.at_end(3)
    restarted(crowd)

    def fail(*_):
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(RunStream, "next_batch", fail)
        crowd.news()
    assert not any(one.member for one in readers)
    assert all(one.line.is_slow for one in readers)  # aborted
    for one in readers:
        crowd.readers.remove(one)
        one.stream.close()
    assert not crowd.tails._tails
