"""A setting that no store can have is refused when it is made, by its name and range."""

import pytest

from ibb.protocol.binlog_state import BinlogState
from ibb.protocol.format_description import FormatDescription
from ibb.protocol.gtid import Gtid
from ibb.storage import Store, StoreOptions
from ibb.storage.errors import GroupError
from ibb.storage.record import Xid

from .events import transaction
from .verify.verify_rig import SMALL, findings


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("page_size", 256), ("page_size", 768), ("page_size", 1 << 17), ("page_size", 512.0),
        ("page_size", 0), ("page_size", -512),
        ("max_binlog_size", 1 << 62), ("max_binlog_size", 3 * 16384),
        ("max_binlog_size", 1048576.5), ("max_binlog_size", (1 << 32) * 16384),
        ("state_interval", 1 << 80), ("state_interval", 8192), ("state_interval", 3 << 20),
        ("fifo_pages_max", 3), ("fifo_pages_max", 10**12),
        ("redo_segment_size", (256 << 10) - 1), ("redo_segment_size", 1 << 32),
        ("oob_piece_size", 255), ("oob_piece_size", 1 << 20),
        ("flush_log_at_commit", 3), ("flush_log_at_commit", "1"),
        ("flush_log_interval", 0), ("flush_log_interval", float("nan")),
        ("flush_log_interval", float("inf")),
        ("binlog_expire_logs_seconds", 10**30), ("binlog_expire_logs_seconds", float("nan")),
        ("max_binlog_total_size", 1 << 64), ("slave_connections_needed_for_purge", 1 << 32),
        ("server_id", -1), ("server_id", 1 << 32),
        ("server_version", ""), ("server_version", "x" * 51), ("server_version", "\u20ac"),
        ("server_version", "a\0b"), ("format_description", "none"),
    ],
)  # fmt: skip
def test_a_value_out_of_range_is_refused_by_name(name, value):
    with pytest.raises(ValueError, match=rf"^{name} must be "):
        StoreOptions(**{name: value})


def test_values_at_the_ends_of_their_ranges_are_taken(tmp_path):
    options = StoreOptions(
        page_size=512, max_binlog_size=16 * 512, state_interval=1 << 63,
        redo_segment_size=256 << 10, fifo_pages_max=1 << 20, server_id=(1 << 32) - 1,
        server_version="\u00fc" * 50, binlog_expire_logs_seconds=(1 << 32) - 1,
        max_binlog_total_size=(1 << 64) - 1, flush_log_interval=1e9, flush_log_at_commit=0,
        slave_connections_needed_for_purge=(1 << 32) - 1,
    )  # fmt: skip
    for _ in range(2):
        with Store.open(tmp_path, options) as store:
            store.switch_file()
            described = store.formats.in_force(store.end())
    assert FormatDescription.parse(described, has_checksum=False).server_version == "\u00fc" * 50
    assert findings(tmp_path) == []


class Moment:
    """A clock that stands still."""

    def __init__(self, now):
        self._now = now

    def now(self):
        return self._now

    def monotonic(self):
        return 0.0


@pytest.mark.parametrize(
    ("now", "held"), [(-1.0, 0), (0.0, 0), (2**32 + 5.0, 2**32 - 1), (1e18, 2**32 - 1)]
)
def test_a_clock_that_events_cannot_hold_counts_as_the_nearest_moment(tmp_path, now, held):
    with Store.open(tmp_path, SMALL, clock=Moment(now)) as store:
        described = store.formats.in_force(store.end())
        with store.begin() as group:
            group.write(transaction("a"))
            group.prepare(Xid(1, b"a", b""))
        store.commit_prepared(Xid(1, b"a", b""), Gtid(0, 1, 1))
    assert FormatDescription.parse(described, has_checksum=False).timestamp == held


@pytest.mark.parametrize("gtid", [(1 << 32, 1, 1), (0, 1 << 32, 1), (0, 1, 1 << 64), (0, 1, -1)])
def test_a_state_out_of_range_is_refused_and_nothing_is_done(tmp_path, gtid):
    with Store.open(tmp_path, SMALL) as store:
        with pytest.raises(GroupError, match="cannot be stored"):
            store.set_binlog_state(BinlogState([Gtid(*gtid)]))
        with pytest.raises(GroupError, match="cannot be stored"):
            store.reset(BinlogState([Gtid(*gtid)]))
        store.set_binlog_state(BinlogState([Gtid(0, 1, 0), Gtid(1, (1 << 32) - 1, (1 << 64) - 1)]))
    Store.open(tmp_path, SMALL).close()
