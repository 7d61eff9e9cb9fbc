"""A dump of files that another process begins anew is of one history, and ends with the reason."""

import pytest

from ibb.server.dump import dump_stream
from ibb.server.dump.dump_batch import Outcome
from ibb.server.dump.dump_stream import DumpStream
from ibb.server.dump.packet_buffers import PIECE_BYTES
from ibb.server.dump.run_stream import RunStream
from ibb.storage import Store, StoreOptions
from ibb.storage.page_runs import PageRuns
from ibb.storage.read_only import ReadOnlyHistory

from ...storage.begun_anew import DIRECTORY, TwoHistories, mark_of
from ...storage.preemption import Meeting, meet_everywhere
from .made_streams import Client, by_descriptor, packets_of, publish_rows, request, rest_of, stream

CLIENT_BYTES = 1 << 14
TOLD = "deleted and begun anew (RESET MASTER)"


@pytest.fixture(params=[DumpStream, RunStream])
def kind(request):
    return request.param


def begun(kind, monkeypatch, batch=1000, groups_in_a_file=2):
    """Return two histories, a view of the first, and a dump of it that has sent one batch."""
    monkeypatch.setattr(dump_stream, "BATCH_BYTES", batch)
    both = TwoHistories(groups_in_a_file)
    view = ReadOnlyHistory(both.disk, DIRECTORY, follow_unsynced=True)
    shared = {"runs": PageRuns(view)} if kind is RunStream else {}
    one = stream(kind, view, request(), **shared)
    assert one.start().outcome is Outcome.MORE
    first = bytes(one.next_batch().data)
    assert mark_of(1) in first
    return both, view, one


def test_nothing_is_sent_any_more_though_nobody_has_looked(kind, monkeypatch):
    both, _, one = begun(kind, monkeypatch)
    both.begin_anew()
    made = rest_of(one)
    assert (made.outcome, made.data) == (Outcome.END, b"")
    assert TOLD in made.error
    one.close()


def test_a_start_that_another_history_came_into_is_none(kind, monkeypatch):
    both, view, one = begun(kind, monkeypatch)
    another = stream(kind, view, request())
    find = another._find_start
    monkeypatch.setattr(another, "_find_start", lambda: (find(), both.begin_anew())[0])
    batch = another.start()
    assert (batch.outcome, batch.data) == (Outcome.END, b"")
    assert TOLD in str(batch.error)
    another.close()
    one.close()


@pytest.mark.parametrize("looks", [False, True], ids=["nobody looks", "somebody looks"])
@pytest.mark.parametrize(
    "within", ["/dump_stream.py", "/run_stream.py", "/open_files.py", "/page_runs.py"]
)
@pytest.mark.parametrize("sends", [False, True], ids=["made", "sent"])
def test_a_dump_is_of_one_history(kind, sends, within, looks, monkeypatch):
    if kind is DumpStream and (sends or within in ("/run_stream.py", "/page_runs.py")):
        return
    sent = []

    def scene():
        both, view, one = begun(kind, monkeypatch, *((200, 6) if sends else (1000, 2)))
        made = []

        def begin_anew():
            both.begin_anew()
            if looks:
                view.refresh()

        def check():
            one.close()
            assert mark_of(2) not in made[0].data
            assert made[0].outcome is (Outcome.END if made[0].error else Outcome.IDLE)
            assert made[0].error is None or TOLD in made[0].error

        def read():
            if not sends:
                made.append(rest_of(one))
                return
            with by_descriptor(), Client(CLIENT_BYTES) as client:
                made.append(rest_of(one, client=client))
                sent.append(client.bytes)

        return Meeting(read, begin_anew, check)

    assert meet_everywhere(scene, stops=40, within=(within,)) > 0
    assert not sends or max(sent) > 1000


class Ending(Client):
    """A client during whose sending a history ends."""

    def lend(self, call):
        found = super().lend(call)
        self.is_over.append(True)
        return found


@pytest.mark.parametrize("room", [1 << 12, 1 << 20], ids=["takes a part", "takes all"])
def test_behind_what_was_sent_the_end_is_counted_on(room, tmp_path, monkeypatch):
    """A history ends while packets of it are sent: the client gets the rest of one that it has."""
    monkeypatch.setattr(dump_stream, "BATCH_BYTES", 40_000)
    is_over, parts, left = [], [], 0
    with Store.open(tmp_path, StoreOptions(format_description="upstream")) as store:
        publish_rows(store, groups=PIECE_BYTES // 8000, events=3, size=3000)
        monkeypatch.setattr(store, "is_still", lambda _: not is_over)
        one = stream(RunStream, store, request())
        parts.append(bytes(one.start().data))
        with by_descriptor(), Ending(room) as client:
            client.is_over = is_over
            while True:
                batch = one.next_batch(client)
                parts += client.received(), bytes(batch.data)
                if batch.outcome is not Outcome.MORE:
                    break
                assert not is_over or (batch.sent_size and batch.data)
                left += len(is_over)
        assert (batch.outcome, TOLD in str(batch.error)) == (Outcome.END, True)
        data = b"".join(parts)
        packets = packets_of(data)
        assert sum(4 + len(payload) for _, payload in packets) == len(data)
        assert [number for number, _ in packets] == [n & 255 for n in range(1, len(packets) + 1)]
        assert one.seq == (len(packets) + 1) & 255
        assert left == (room < len(data))
        one.close()


def test_inside_a_packet_there_is_no_place_for_the_reason(monkeypatch):
    """What the batch had added to it is not sent: the client is still where it was before."""
    both, _, one = begun(DumpStream, monkeypatch)
    monkeypatch.setattr(one, "_next_batch", lambda: go_on(one, both))
    one._framer = object()
    seq = one.seq
    batch = one.next_batch()
    assert (batch.outcome, batch.data) == (Outcome.END, b"")
    assert (one.at_boundary, one.seq) == (False, seq)
    one._framer = None
    one.close()


def go_on(one, both):
    both.begin_anew()
    one._framer, one.seq = None, one.seq + 1
