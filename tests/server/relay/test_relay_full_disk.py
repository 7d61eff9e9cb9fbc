"""A disk without room for the next file of a relay: it waits, serves what it has, and goes on."""

from ibb.protocol.gtid import Gtid
from ibb.storage import Store, StoreOptions

from ...faults.sim_disk import SimDisk
from ..raw_client import RawClient, dumping
from .fake_primary import HANG, FakePrimary, group, preamble
from .test_relay import Following, gtids, until

FILE = 16 * 512
LOG = 256 << 10
GROUPS = 500


def options():
    return StoreOptions(
        page_size=512,
        max_binlog_size=FILE,
        state_interval=1024,
        redo_segment_size=LOG,
        oob_piece_size=400,
        format_description="upstream",
    )


async def test_a_disk_that_is_full_when_a_file_is_made_is_waited_for(serve):
    disk = SimDisk(capacity=2 * LOG + 4 * FILE)
    wanted = [f"0-1-{seq}" for seq in range(1, GROUPS + 1)]
    script = preamble() + [e for seq in range(1, GROUPS + 1) for e in group(Gtid(0, 1, seq))]
    with Store.open("/s", options(), disk=disk) as store:
        server = await serve(store)
        async with (
            FakePrimary(*[[*script, HANG]] * 1000) as primary,
            Following(store, primary.port) as following,
        ):
            await until(lambda: len(following.delays) > 2)
            held = gtids(store)
            assert 20 < len(held) < GROUPS
            assert held == wanted[: len(held)]
            dump = await dumping(server, f"0-1-{len(held) - 5}", non_block=False)
            assert [str((await dump.next_group()).gtid) for _ in range(5)] == held[-5:]
            async with await RawClient.logged_in(server, "admin", "mighty") as client:
                assert await client.query("SHOW BINARY LOGS")
            disk.capacity = None
            await until(lambda: gtids(store) == wanted)
            assert str((await dump.next_group()).gtid) == wanted[len(held)]
            await dump.client.close()
        await server.stop()
