"""A real primary, a relay that keeps its binlog, and pipelines on the relay's directory."""

import threading
from typing import NamedTuple

from ibb.pipeline.tables.check import check_tables
from ibb.pipeline.tables.config import PipelineConfig, ServerConfig
from ibb.pipeline.tables.errors import PipelineError
from ibb.pipeline.tables.pipeline import Pipeline, Progress
from ibb.storage.inspect.recovered_view import recovered_view
from ibb.storage.os_disk import OsDisk
from ibb.storage.read_only import ReadOnlyHistory

from ...integration.waiting import wait_until

CATCH_UP_SECONDS = 60
ROW_OPTIONS = ("--binlog-format=ROW", "--binlog-row-metadata=FULL")


class Topology(NamedTuple):
    """The servers."""

    primary: object
    relay: object

    def config(self, folder, **settings):
        server = ServerConfig(socket=str(self.primary.socket), chunk_rows=40)
        return PipelineConfig(
            "test", str(self.relay.directory), str(folder / "lake"), server=server, **settings
        )

    def caught_up(self):
        """Wait until the relay's directory has what the primary has."""
        from ibb.protocol.gtid import GtidPosition

        position = GtidPosition.parse(self.primary.binlog_position())

        def is_there():
            path = str(self.relay.directory)
            history = ReadOnlyHistory(recovered_view(OsDisk(), path), path, follow_unsynced=True)
            try:
                return all(history.state().contains(gtid) for gtid in position)
            finally:
                history.close()

        wait_until(is_there, CATCH_UP_SECONDS)

    def run(self, config, snapshot=()):
        """Run a pipeline until it has everything; return the batches that it applied."""
        self.caught_up()
        batches = []
        progress = Progress(lambda *_: None, lambda *done: batches.append(done))
        Pipeline(config, progress).run(threading.Event(), once=True, snapshot=snapshot)
        return batches

    def is_followed(self, config, case):
        """Run a pipeline of one table: all of it is right then, or it stops before a wrong row."""
        try:
            self.run(config)
        except PipelineError as error:
            assert "cannot be followed" in str(error), case  # noqa: PT017
            return False
        assert self.differences(config) == ([], 1), case
        return True

    def differences(self, config):
        """Return a line for each table that is not as at the primary, and the number of tables."""
        results = list(check_tables(config))
        return [result.line() for result in results if not result.is_equal], len(results)


def plain(value):
    """Return a value as text, as it is."""
    return value.decode() if isinstance(value, bytes) else str(value)


def selected(primary, name, text=plain):
    """Return the columns of a table at the primary, sorted, and its rows as text."""
    columns = sorted(row[0] for row in primary.rows(f"SHOW COLUMNS FROM {name}"))
    return columns, shown(primary.rows(f"SELECT {', '.join(columns)} FROM {name}"), text)


def shown(rows, text=plain):
    """Return rows as text in an order of their own, whichever of the two sides they are from."""
    return sorted(tuple(map(text, row)) for row in rows)
