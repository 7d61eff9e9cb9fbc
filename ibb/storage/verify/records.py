"""
Records, as they come in chunks: whether each means something, and what it says of the history.

A record is begun with its first chunk, fed, and ended or, when it breaks off, given up. Only a
commit record may be large; it is never held. Source: ibb-format 5.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

from ibb.protocol.errors import FormatError, Truncated
from ibb.protocol.format_description import FormatDescription
from ibb.protocol.gtid import Gtid
from ibb.storage.chunk import FILLER
from ibb.storage.file_header import FileHeader
from ibb.storage.group_head import GroupHead, parse_head
from ibb.storage.record import (
    OOB_HEADER_BYTES_MAX,
    GtidState,
    RecordType,
    parse_oob_header,
    parse_state,
)
from ibb.storage.record_reader import RECORD_BYTES_MAX

from .finding import Finding, Kind, Place
from .groups import Bytes, EventWalk, TreeCheck
from .losses import Losses
from .states import HistoryCheck
from .xa import XaCheck

QUEUED_STATES_MAX = 100  # inside the head of one commit record, which is smaller than that


class RecordCheck(Protocol):
    """A record that is being read."""

    def add(self, data: Bytes) -> None:
        """Take the contents of its next chunk."""

    def end(self) -> None:
        """It is whole."""

    def give_up(self) -> Gtid | None:
        """It breaks off; return its GTID if it was a group that is lost now."""


class RecordChecks:
    """
    Makes the check for each record.

    Args:
        history: is told of groups and states.
        losses: takes findings.
        trees: reads groups with out-of-band pieces.
        formats: is told of format description records.

    Attributes:
        header: of the file that is being read.
        records: number of records begun.
    """

    def __init__(
        self,
        history: HistoryCheck,
        losses: Losses,
        trees: TreeCheck,
        formats: Callable[[Place, bytes], None],
    ) -> None:
        self.history = history
        self.losses = losses
        self.trees = trees
        self.formats = formats
        self.xa = XaCheck(losses)
        self.header: FileHeader | None = None
        self.records = 0
        self._headless: _CommitCheck | None = None  # its GTID is not known yet
        self._queued: list[tuple[GtidState, Place]] = []

    def begin(self, record_type: int, place: Place) -> RecordCheck:
        """Return the check for a record that begins at *place*."""
        self.records += 1
        if record_type == RecordType.COMMIT:
            self._headless = commit = _CommitCheck(self, place)
            return commit
        if record_type == RecordType.OOB:
            return _OobCheck(self, place)
        if record_type == RecordType.GTID_STATE:
            return _StateCheck(self, place)
        if record_type == RecordType.DUMMY:
            return _DummyCheck(self, place)
        if record_type in (RecordType.XA_PREPARE, RecordType.XA_COMPLETE):
            return _XaRecordCheck(self, place, record_type)
        text = f"record of unknown type {record_type}: readers skip it"
        self.report(Finding.at(Kind.UNKNOWN_RECORD, place, text))
        return _Ignored()

    @property
    def major(self) -> int:
        """Format version of the present file."""
        assert self.header is not None
        return self.header.major

    def report(self, finding: Finding) -> None:
        """Add a finding that costs no more than it says."""
        self.losses.report(finding)

    def enter_file(self, header: FileHeader) -> None:
        """What comes next lies in another file."""
        self.header = header
        self.history.enter_file()

    def lose(self, finding: Finding, interrupted: Gtid | None = None) -> None:
        """Add a finding behind which records may be missing."""
        self.history.lose(finding, interrupted)
        self.xa.forget()

    def pass_over(self) -> None:
        """Records are gone that nobody misses: what is behind them begins with its own state."""
        self.losses.finish()
        self.history.certain = False
        self.xa.forget()

    def head_known(self, head: GroupHead | None, place: Place) -> None:
        """The open commit record's GTID is known, or never will be."""
        self._headless = None
        if head is not None:
            if head.gtid is not None:
                self.history.group(head.gtid, place)
            self.xa.commit(head.lists, place)
        queued, self._queued = self._queued, []
        for state, state_place in queued:
            self._compare(state, state_place)

    def state(self, state: GtidState, place: Place) -> None:
        """Compare a state with the history, as soon as the group that it interrupts is known."""
        if self._headless is not None and len(self._queued) < QUEUED_STATES_MAX:
            self._queued.append((state, place))
        else:
            self._compare(state, place)

    def _compare(self, state: GtidState, place: Place) -> None:
        assert self.header is not None
        interval = self.header.state_interval
        if place.offset or not (place.page_no == 1 or (interval and place.page_no % interval == 0)):
            text = "GTID state record where none is due"
            self.report(Finding.at(Kind.STATE_MISPLACED, place, text))
            return
        if place.page_no == 1:
            self.history.full(state, place)
        else:
            self.history.differential(state, place)
        self.xa.state(state, place)


class _CommitCheck:
    __slots__ = ("_checks", "_head", "_held", "_major", "_place", "_useless", "_walk")

    def __init__(self, checks: RecordChecks, place: Place) -> None:
        self._checks = checks
        self._place = place
        self._major = checks.major
        self._held: Bytes = b""
        self._head: GroupHead | None = None
        self._walk = EventWalk()
        self._useless = False

    def add(self, data: Bytes) -> None:
        if self._useless:
            return
        if self._head is not None:
            self._feed(data)
            return
        data = b"".join((self._held, data)) if self._held else data
        try:
            head = parse_head(data, self._major)
        except Truncated:
            self._held = data
            return
        except FormatError as error:
            self._lose(error.what)
            return
        if head is None or (head.gtid is not None and head.gtid.seq == 0):
            self._not_a_group(head)
            return
        self._head = head
        self._held = b""
        self._checks.head_known(head, self._place)
        if head.gtid is None:
            self._useless = True  # readers take the event and no more
            self._check_format(head)
        else:
            self._feed(head.payload)

    def end(self) -> None:
        if self._useless:
            return
        if self._head is None:
            try:
                parse_head(self._held, self._major)
            except Truncated as error:
                self._lose(f"Short chunk: {error.what}")
            return
        if self._head.lists:
            for finding in self._checks.trees.check(self._place):
                self._report(finding)
            return
        try:
            self._walk.finish()
        except FormatError as error:
            self._report(Finding.at(Kind.EVENT_LENGTH, self._place, error.what))

    def give_up(self) -> Gtid | None:
        if self._head is None and not self._useless:
            self._checks.head_known(None, self._place)
        return self._head.gtid if self._head is not None else None

    def _feed(self, data: Bytes) -> None:
        try:
            self._walk.feed(data)
        except FormatError as error:
            self._report(Finding.at(Kind.EVENT_LENGTH, self._place, error.what))
            self._useless = True

    def _report(self, finding: Finding) -> None:
        assert self._head is not None
        if finding.kind is not Kind.OOB_FIRST:
            finding = replace(finding, lost=str(self._head.gtid))
        self._checks.report(finding)

    def _lose(self, text: str) -> None:
        self._useless = True
        self._checks.lose(Finding.at(Kind.COMMIT_RECORD, self._place, text))
        self._checks.head_known(None, self._place)

    def _not_a_group(self, head: GroupHead | None) -> None:
        if head is None:
            text = "commit record begins with neither a GTID event nor a format description"
        else:
            text = f"group with sequence number 0: {head.gtid}"
        self._useless = True
        self._checks.report(Finding.at(Kind.NOT_A_GROUP, self._place, text))
        self._checks.head_known(None, self._place)

    def _check_format(self, head: GroupHead) -> None:
        try:
            FormatDescription.parse(head.event, has_checksum=False)
        except FormatError as error:
            self._checks.report(Finding.at(Kind.FORMAT_DESCRIPTION, self._place, error.what))
            return
        self._checks.formats(self._place, head.event)


class _Collected:
    """A record that is small enough to be held."""

    __slots__ = ("_checks", "_parts", "_place", "_size")

    def __init__(self, checks: RecordChecks, place: Place) -> None:
        self._checks = checks
        self._place = place
        self._parts: list[Bytes] = []
        self._size = 0

    def add(self, data: Bytes) -> None:
        self._size += len(data)
        if self._size <= RECORD_BYTES_MAX:
            self._parts.append(data)

    def give_up(self) -> Gtid | None:
        return None

    def contents(self) -> bytes:
        """Return all of the record; raise FormatError if that is too much."""
        if self._size > RECORD_BYTES_MAX:
            raise FormatError(f"record of more than {RECORD_BYTES_MAX} bytes")
        return b"".join(self._parts)


class _StateCheck(_Collected):
    __slots__ = ("_major",)

    def __init__(self, checks: RecordChecks, place: Place) -> None:
        super().__init__(checks, place)
        self._major = checks.major

    def end(self) -> None:
        try:
            state = parse_state(self.contents(), self._major)
        except FormatError as error:
            what = f"Short chunk: {error.what}" if isinstance(error, Truncated) else error.what
            self._checks.report(Finding.at(Kind.STATE_RECORD, self._place, what))
            return
        self._checks.state(state, self._place)


class _XaRecordCheck(_Collected):
    __slots__ = ("_type",)

    def __init__(self, checks: RecordChecks, place: Place, record_type: int) -> None:
        super().__init__(checks, place)
        self._type = record_type

    def end(self) -> None:
        try:
            self._checks.xa.record(self._type, self.contents(), self._place)
        except FormatError as error:
            what = f"Short chunk: {error.what}" if isinstance(error, Truncated) else error.what
            self._checks.report(Finding.at(Kind.XA_RECORD, self._place, what))


class _OobCheck:
    """The head of a piece; what is linked to it is checked with the group, if there is one."""

    __slots__ = ("_checks", "_head", "_place", "_size")

    def __init__(self, checks: RecordChecks, place: Place) -> None:
        self._checks = checks
        self._place = place
        self._head: Bytes = b""
        self._size = 0

    def add(self, data: Bytes) -> None:
        self._size += len(data)
        if not self._head:
            self._head = data[:OOB_HEADER_BYTES_MAX]
        elif len(self._head) < OOB_HEADER_BYTES_MAX:
            self._head = b"".join((self._head, data[: OOB_HEADER_BYTES_MAX - len(self._head)]))

    def end(self) -> None:
        try:
            header, start = parse_oob_header(self._head)
            if start == self._size:
                raise Truncated("no piece behind the header")
            links = header.left, header.right
            if max(links) >= self._place.position or (
                not header.is_leaf and header.left >= header.right
            ):
                raise FormatError(f"links {links[0]} and {links[1]} do not lead backward in order")
        except FormatError as error:
            what = f"Short chunk: {error.what}" if isinstance(error, Truncated) else error.what
            self._checks.report(Finding.at(Kind.OOB_RECORD, self._place, what))

    def give_up(self) -> Gtid | None:
        return None


class _DummyCheck:
    """Padding: one chunk of `FILLER` that takes the rest of its page."""

    __slots__ = ("_checks", "_chunks", "_place", "_right")

    def __init__(self, checks: RecordChecks, place: Place) -> None:
        self._checks = checks
        self._place = place
        self._chunks = 0
        self._right = True

    def add(self, data: Bytes) -> None:
        self._chunks += 1
        self._right &= bytes(data).strip(bytes([FILLER])) == b""

    def end(self) -> None:
        if not self._right or self._chunks > 1:
            text = "padding record holds something else, or more than one chunk"
            self._checks.report(Finding.at(Kind.PADDING, self._place, text))

    def give_up(self) -> Gtid | None:
        return None


class _Ignored:
    __slots__ = ()

    def add(self, data: Bytes) -> None:
        pass

    def end(self) -> None:
        pass

    def give_up(self) -> Gtid | None:
        return None
