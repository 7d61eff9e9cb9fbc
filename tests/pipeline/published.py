"""Small stores for tests of the pipeline."""

from ibb.demo.made_up_groups import made_up_groups
from ibb.protocol.gtid import Gtid
from ibb.protocol.gtid_event import GtidFlag, encode_gtid_event
from ibb.storage import Store, StoreOptions

OPTIONS = StoreOptions(
    page_size=4096, max_binlog_size=256 << 10, state_interval=16 << 10, redo_segment_size=1 << 20
)


def publish(store, count, *, skip=0):
    """Publish made-up groups, and return their GTIDs."""
    gtids = []
    for number, (gtid, events) in enumerate(made_up_groups(skip + count)):
        if number >= skip:
            with store.begin() as group:
                group.write(events)
                group.commit(gtid, wait=False)
            gtids.append(str(gtid))
    store.sync()
    return gtids


def publish_events(store, gtid, *events, flags=GtidFlag.TRANSACTIONAL, timestamp=1_700_000_000):
    """Publish one group of *events*."""
    gtid = Gtid.parse(gtid) if isinstance(gtid, str) else gtid
    with store.begin() as group:
        group.write(encode_gtid_event(gtid, timestamp, flags) + b"".join(events))
        group.commit(gtid)


def made_store(directory, count, **options):
    """Make a store of *count* groups, closed, and return their GTIDs."""
    with Store.open(directory, OPTIONS, **options) as store:
        return publish(store, count)
