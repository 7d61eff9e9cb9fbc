"""A store in which two threads meet."""

from ibb.protocol.gtid import Gtid
from ibb.storage import Store, StoreOptions
from ibb.storage.verify import verify_directory
from ibb.storage.verify.finding import Severity

from ..faults.sim_disk import SimDisk
from .events import transaction

OPTIONS = StoreOptions(
    page_size=512, max_binlog_size=512 * 24, state_interval=1024, redo_segment_size=256 << 10,
    oob_piece_size=256, format_description="upstream", slave_connections_needed_for_purge=0,
    background=False,
)  # fmt: skip


class Scene:
    """A store of two files with groups of domain 0, and what must be in it at the end."""

    def __init__(self):
        self.disk = SimDisk()
        self.store = Store.open("/s", OPTIONS, disk=self.disk)
        self.committed = []
        self.commit(0, 1)
        self.store.switch_file()
        self.commit(0, 2)

    def commit(self, domain, seq, size=300):
        with self.store.begin() as group:
            group.write(transaction("x" * size))
            group.commit(Gtid(domain, 1, seq))
        self.committed.append(Gtid(domain, 1, seq))

    def prepare(self, name):
        with self.store.begin() as group:
            group.write(transaction("prepared"))
            group.prepare(name)

    def check(self):
        """All that was committed is there after the next opening, and no rule is broken."""
        self.store.close()
        assert not self.store._engine.writer.pins._pins.keys()
        findings = verify_directory(self.disk, "/s")
        bad = [finding for finding in findings if finding.severity is Severity.DAMAGE]
        assert not bad, bad[0]
        with Store.open("/s", OPTIONS, disk=self.disk) as store:
            found = sorted(group.gtid for group in store.reader() if group.gtid is not None)
        assert found == sorted(self.committed)
