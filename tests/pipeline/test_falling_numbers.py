"""Servers that give a number behind a higher one: no GTID of theirs may be two places."""

import pytest

from ibb.pipeline.errors import DataLossError, OptionError, ServerRefused

from ..integration.conftest import mariadb_10, new_rig
from ..integration.mariadb_server import PASSWORD
from .running_server import Servers, gtids, read, streamed, wanted_gtids, write

__all__ = ["mariadb_10"]
pytestmark = [pytest.mark.live, pytest.mark.xdist_group("server_source")]


def last_of_each(all_gtids, last):
    """Return the position behind the group with the number *last*, as text."""
    position = {}
    for gtid in all_gtids:
        position[gtid.split("-")[0]] = gtid
        if gtid.endswith(f"-{last}"):
            break
    return position.values()


def test_a_stream_ends_where_numbers_of_a_server_fall(mariadb_10, tmp_path):
    """Where a position may be two places no group comes twice, nor does a stream read for ever."""
    with new_rig() as rig:
        primary = rig.primary(mariadb_10, "--binlog-format=ROW", "--gtid-strict-mode=0")
        primary.run("CREATE DATABASE shop", "CREATE TABLE shop.orders (id INT, word TEXT)")
        write(primary, 0, 3)
        for number in (90, 50):
            primary.run(
                "SET gtid_domain_id = 0",
                f"SET gtid_seq_no = {number}",
                f"INSERT INTO shop.orders VALUES ({number}, 'n')",
            )
        relay = rig.ibb().relay_from(primary.port).start()
        secret = tmp_path / "password"
        secret.write_text(PASSWORD + "\n")
        both = Servers(primary, relay, secret)
        both.caught_up()
        write(primary, 9, 3)
        both.caught_up()
        wanted = wanted_gtids(primary)
        numbers = [int(gtid.split("-")[2]) for gtid in wanted if gtid[0] == "0"]
        assert numbers[-4:] == [90, 50, 91, 92]
        for one in (both.source("mariadb"), both.source("ibb")):
            assert read(one.options()) == wanted  # from one end to the other
            with pytest.raises((OptionError, ServerRefused, DataLossError), match=r"0-\d+-50"):
                read(one.options(startingGtid=",".join(last_of_each(wanted, "50"))))
            reader = streamed(one, maxGroupsPerTrigger="1")
            found, offset = [], reader.initialOffset()
            with pytest.raises(DataLossError, match=r"gtid_strict_mode=1"):
                while (end := reader.latestOffset(offset)) != offset:
                    found += gtids(part.value for part in reader.partitions(offset, end))
                    offset = end
            assert found == wanted[: len(found)]
            assert offset["gtid"].count("-50")
            reader.stop()
