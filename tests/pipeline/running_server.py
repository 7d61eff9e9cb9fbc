"""Running servers as sources, and what is read of them."""

from typing import NamedTuple

from ibb.pipeline.group_rows import GROUP_COLUMNS
from ibb.pipeline.options import SourceOptions
from ibb.pipeline.read_plan import groups_of, plan_read
from ibb.pipeline.server_history import ServerHistory
from ibb.pipeline.stream_reader import StreamReader

from ..integration.mariadb_server import USER
from ..integration.waiting import wait_until


class Source(NamedTuple):
    """A server that is read, and the account that tests have there."""

    port: int
    secret: object

    def options(self, **options):
        url = f"mariadb://{USER}@127.0.0.1:{self.port}"
        return SourceOptions.parse({"url": url, "passwordFile": str(self.secret), **options})


class Servers(NamedTuple):
    """A primary with several binlog files and domains, and a relay that has it all."""

    primary: object
    relay: object
    secret: object

    def source(self, kind):
        server = self.primary if kind == "mariadb" else self.relay
        return Source(server.port, self.secret)

    def caught_up(self):
        position = self.primary.binlog_position()
        source = Source(self.relay.port, self.secret).options()

        def is_there():

            history = ServerHistory(source.server)
            try:
                return str(history.state()[1]) == position
            finally:
                history.close()

        wait_until(is_there, 60)


def write(primary, first, count):
    """Write groups in three domains, and some large ones, in several files."""
    for number in range(first, first + count):
        primary.run(
            f"SET gtid_domain_id = {number % 3}",
            f"INSERT INTO shop.orders VALUES ({number}, 'n{number}')",
            f"UPDATE shop.orders SET word = 'u' WHERE id = {number}",
        )


def gtids(tasks):
    return [str(group.gtid) for task in tasks for group in groups_of(task)]


def wanted_gtids(primary):
    """Return the GTIDs of all groups, as the primary shows them."""
    found = []
    for file in primary.binlog_files():
        rows = primary.rows(f"SHOW BINLOG EVENTS IN '{file.name}'")
        infos = [str(row[5]) for row in rows if row[2] == "Gtid"]
        found += [info.replace("BEGIN ", "").split()[-1] for info in infos]
    return found


def read(options):
    return gtids(plan_read(options))


def streamed(source, **options):
    return StreamReader(source.options(**options), GROUP_COLUMNS)


def drain(reader, offset):
    found = []
    while (end := reader.latestOffset(offset)) != offset:
        found.append(gtids(part.value for part in reader.partitions(offset, end)))
        offset = end
    return found, offset
