"""
The format writer: records that say in which format the groups behind them are.

A program's store describes its own format once per opening; a relay stores what its upstream says.
What is in force where is also noted beside the files, see `format_catalogue.py`. The note is made
first, for the place where the record will begin: a note of a record that is not there is passed
over, and a disk that is full then has harmed nothing.
"""

from ibb.protocol.format_description import FormatDescription

from .clock import Clock, event_time
from .commit_position import CommitPosition
from .engine import Engine
from .errors import DiskError, GroupError, StoreFull
from .format_catalogue import FormatCatalogue
from .group_committer import commit_position
from .group_head import check_head
from .new_record import NewRecord
from .options import StoreOptions
from .record import NO_LISTS, RecordType


class FormatWriter:
    """
    Writes format descriptions.

    Args:
        engine: takes the records.
        formats: takes the notes.
        options: of the store.
        clock: tells when it was opened.
    """

    def __init__(
        self, engine: Engine, formats: FormatCatalogue, options: StoreOptions, clock: Clock
    ) -> None:
        self._engine = engine
        self._formats = formats
        self._options = options
        self._clock = clock
        self._owes_own = options.format_description == "own"

    def write(self, event: bytes) -> CommitPosition:
        """As `Store.write_format_description`."""
        FormatDescription.parse(event, has_checksum=False)
        check_head(event)
        record = NewRecord(RecordType.COMMIT, NO_LISTS + event)
        with self._engine.writing:
            self._engine.check()
            try:
                self._formats.add(self._engine.place_of(record), event)
            except DiskError as error:
                if error.full:
                    raise StoreFull(f"no room for a note of the format: {error}") from error
                raise
            return commit_position(None, self._engine.append(record))

    def write_own(self) -> None:
        """Note the opening, in a program's store; where that cannot be, before the next group."""
        if not self._owes_own:
            return
        own = FormatDescription.default(
            self._options.server_version, self._options.server_id, event_time(self._clock)
        )
        try:
            position = self.write(own.to_store())
        except (StoreFull, GroupError):
            return  # not a reason to stay shut: who publishes next is told
        self._owes_own = False
        self._engine.sync_to(position.lsn)
