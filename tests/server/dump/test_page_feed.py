"""Pages for an encoder: what a reader has of its own, and that it gives that back."""

from pathlib import Path

from ibb.protocol.gtid import GtidPosition
from ibb.server.dump import page_feed
from ibb.server.dump.dump_batch import Outcome
from ibb.server.dump.dump_stream import DumpStream
from ibb.server.dump.run_stream import RunStream
from ibb.storage import Store, StoreOptions

from .made_streams import made_by, publish_rows, request, rest_of, stream


def test_who_has_everything_keeps_no_room_for_pages(monkeypatch, tmp_path):
    made, real = [], page_feed.PageRing
    monkeypatch.setattr(page_feed, "PageRing", lambda *a: made.append(a) or real(*a))
    options = StoreOptions(max_binlog_size=64 << 20, format_description="upstream")
    with Store.open(tmp_path / "store", options) as store:
        publish_rows(store, groups=30, events=120, size=8000)
        one = stream(RunStream, store, request(connect_state=GtidPosition()))
        assert rest_of(one, one.start()).outcome is Outcome.IDLE
        assert len(made) == 1
        assert one._feed._ring is None
        assert not one._feed.has_pages
        one.close()


def test_pages_are_read_once_for_who_reads_alone(tmp_path):
    """Also those of a group that is begun in its pieces and read again from its commit record."""
    options = StoreOptions(max_binlog_size=64 << 20, format_description="upstream")
    with Store.open(tmp_path / "store", options) as store:
        publish_rows(store, groups=30, events=120, size=8000)
        before = bytes_read()
        made = made_by(RunStream, store, request())
        read = bytes_read() - before
        assert len(made.data) > 20 << 20
        assert len(made.data) < read < 1.1 * len(made.data)
        assert made == made_by(DumpStream, store, request())


def bytes_read():
    """Return how many bytes this thread has read so far."""
    lines = Path("/proc/thread-self/io").read_text().splitlines()
    return int(dict(line.split(": ") for line in lines)["rchar"])
