"""Pages for an encoder: what a reader has of its own it gives back when it has everything."""

from ibb.protocol.gtid import GtidPosition
from ibb.server.dump import page_feed
from ibb.server.dump.dump_batch import Outcome
from ibb.server.dump.run_stream import RunStream
from ibb.storage import Store, StoreOptions

from ...faults.sim_disk import SimDisk
from .made_streams import publish_rows, request, rest_of, stream


def test_who_has_everything_keeps_no_room_for_pages(monkeypatch):
    made, real = [], page_feed.PageRoom
    monkeypatch.setattr(page_feed, "PageRoom", lambda *a: made.append(a) or real(*a))
    options = StoreOptions(max_binlog_size=64 << 20, format_description="upstream")
    with Store.open("/s", options, disk=SimDisk()) as store:
        publish_rows(store, groups=30, events=120, size=8000)
        one = stream(RunStream, store, request(connect_state=GtidPosition()))
        assert rest_of(one, one.start()).outcome is Outcome.IDLE
        assert len(made) == 1
        assert one._feed._room is None
        one.close()
