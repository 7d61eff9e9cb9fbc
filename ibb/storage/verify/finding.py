"""
What a check of a directory can find, and how grave it is.

The words of `Kind` are stable: programs may compare them. `docs/verify.md` lists them.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple, Self

from ibb.storage.file_name import binlog_name
from ibb.storage.position import Position

NOTHING = "nothing"


class Severity(StrEnum):
    """How grave a finding is."""

    NOTE = "note"  # worth knowing, nothing is wrong
    WARNING = "warning"  # not as it should be, but every group can be read
    DAMAGE = "damage"  # readers stop there, or get less than was written


_NOTE, _WARNING, _DAMAGE = Severity.NOTE, Severity.WARNING, Severity.DAMAGE


class Kind(StrEnum):
    """
    A rule that is broken.

    Attributes:
        severity: of every finding of this kind; of a warning as long as nothing is lost.
        meaning: for people, in a line.
    """

    severity: Severity
    meaning: str

    def __new__(cls, word: str, severity: Severity, meaning: str) -> Self:
        """Make a member that is its *word*."""
        member = str.__new__(cls, word)
        member._value_ = word
        member.severity = severity
        member.meaning = meaning
        return member

    # The directory
    MISSPELT_NAME = "misspelt-name", _WARNING, "a name that MariaDB counts and cannot open"
    SET_ASIDE = "set-aside", _NOTE, "a copy that a recovery made before it cleared something"
    MISSING_FILE = "missing-file", _DAMAGE, "files between others are not there"
    EMPTY_FILE = "empty-file", _DAMAGE, "a file is empty although a later one is not"
    NEWEST_EMPTY = "newest-empty", _DAMAGE, "the three newest files are empty: no recovery possible"
    UNREADABLE = "unreadable", _DAMAGE, "the disk does not give the bytes"
    RESET_UNFINISHED = "reset-unfinished", _NOTE, "the next opening goes on with RESET MASTER"
    RESET_MARKER = "reset-marker", _WARNING, "the marker of a RESET MASTER is damaged"
    BEGUN_ANEW = "begun-anew", _NOTE, "RESET MASTER while the check ran: the rest was not checked"
    BACKUP_UNFINISHED = "backup-unfinished", _DAMAGE, "a backup that was begun and is not whole"
    # Files and their headers
    FILE_TOO_SHORT = "file-too-short", _DAMAGE, "a file without room for a header and one page"
    ODD_LENGTH = "odd-length", _WARNING, "bytes behind the last whole page of a file"
    HEADER_CHECKSUM = "header-checksum", _DAMAGE, "the header's own checksum is wrong"
    HEADER_PAGE_CHECKSUM = "header-page-checksum", _DAMAGE, "the checksum of page 0 is wrong"
    HEADER_MAGIC = "header-magic", _DAMAGE, "not the magic number of a binlog file"
    HEADER_VERSION = "header-version", _DAMAGE, "a major version that is not known"
    HEADER_PAGE_SIZE = "header-page-size", _DAMAGE, "a page size outside 512 to 65536"
    HEADER_FILE_NUMBER = "header-file-number", _DAMAGE, "another number than in the name"
    HEADER_ZERO = "header-zero", _DAMAGE, "no header although the file holds something"
    HEADER_REFERENCE = "header-reference", _WARNING, "a reference to a later file"
    HEADER_LSN = "header-lsn", _NOTE, "a lower LSN than in the file before"
    HEADER_EXTRA = "header-extra", _NOTE, "bytes of the header page that should be zero are not"
    # Pages and chunks
    PAGE_CHECKSUM = "page-checksum", _DAMAGE, "the checksum of a page is wrong"
    ZERO_PAGE = "zero-page", _DAMAGE, "unused pages before a used one"
    UNUSED_BYTES = "unused-bytes", _DAMAGE, "a page ends early although later ones are used"
    BYTES_BEHIND_END = "bytes-behind-end", _WARNING, "not zero behind the last chunk of a page"
    DATA_ENDS_EARLY = "data-ends-early", _WARNING, "a file is not full although a later one is used"
    CHUNK_LENGTH = "chunk-length", _DAMAGE, "a chunk is empty or passes its page's end"
    CHUNK_TYPE = "chunk-type", _DAMAGE, "a type byte that no chunk can have"
    PADDING = "padding", _WARNING, "padding is not as it is written"
    CONTINUATION = "continuation", _DAMAGE, "a record goes on that has not begun"
    MISSING_END = "missing-end", _DAMAGE, "a record begins inside another one"
    TRUNCATED_RECORD = "truncated-record", _DAMAGE, "data ends inside a record"
    TORN_END = "torn-end", _NOTE, "the newest record is not whole: not yet, or not any more"
    # Records
    COMMIT_RECORD = "commit-record", _DAMAGE, "the head of a commit record is wrong"
    STATE_RECORD = "state-record", _DAMAGE, "a GTID state record is wrong in itself"
    OOB_RECORD = "oob-record", _DAMAGE, "the head of an out-of-band record is wrong"
    XA_RECORD = "xa-record", _DAMAGE, "an XA record is wrong"
    UNKNOWN_RECORD = "unknown-record", _WARNING, "a record of an unknown type, which readers skip"
    NOT_A_GROUP = "not-a-group", _WARNING, "a commit record that is no group, which readers skip"
    EVENT_LENGTH = "event-length", _DAMAGE, "the events of a group do not fit together"
    FORMAT_DESCRIPTION = "format-description", _DAMAGE, "a format description no dump passes"
    OOB_TREE = "oob-tree", _DAMAGE, "the out-of-band pieces of a group are linked wrongly"
    OOB_PURGED = "oob-purged", _NOTE, "pieces of a group were in files that have been purged"
    OOB_UNREADABLE = "oob-unreadable", _DAMAGE, "an out-of-band piece of a group is damaged"
    OOB_FIRST = "oob-first", _WARNING, "a commit record is wrong about its first piece"
    # History
    GROUPS_MISSING = "groups-missing", _DAMAGE, "a state knows GTIDs that no record has"
    STATE_DIFFERS = "state-differs", _DAMAGE, "a state is not that of the groups before it"
    STATE_MISSING = "state-missing", _WARNING, "no state record where one is due"
    STATE_MISPLACED = "state-misplaced", _WARNING, "a state record where none is due"
    DOMAIN_DELETED = "domain-deleted", _NOTE, "a domain was deleted from the state"
    GTID_DUPLICATE = "gtid-duplicate", _WARNING, "the same GTID twice in a row of its server"
    GTID_ORDER = "gtid-order", _NOTE, "a lower sequence number than its domain's newest"
    XA_REFERENCE = "xa-reference", _WARNING, "a state overlooks a prepared XA transaction"
    # What this program keeps beside the files
    REDO_SEGMENT = "redo-segment", _NOTE, "a redo segment that was torn when it was begun"
    REDO_DAMAGED = "redo-damaged", _DAMAGE, "the redo log cannot be applied"
    REDO_DIFFERS = "redo-differs", _DAMAGE, "a page is not what the redo log says"
    REDO_BEHIND = "redo-behind", _DAMAGE, "the files go on where the redo log has ended"
    FILES_CUT = "files-cut", _DAMAGE, "the files end before a place that was durable"
    NOT_CLOSED = "not-closed", _NOTE, "the newest pages are only in the redo log"
    SIDECAR = "sidecar", _WARNING, "the list of format descriptions cannot be used"
    SIDECAR_ENTRY = "sidecar-entry", _NOTE, "that list and the records do not agree"
    # The check itself
    MORE = "more", _NOTE, "further notes of a kind that were not reported one by one"


class Place(NamedTuple):
    """A place as findings name it; *offset* counts from the beginning of the page."""

    file_no: int
    page_no: int
    offset: int
    page_size: int

    @property
    def position(self) -> Position:
        """The same place, counted from the beginning of the file."""
        return Position(self.file_no, self.page_no * self.page_size + self.offset)

    def __str__(self) -> str:
        return str(self.position)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """
    Something that is not as it should be.

    Attributes:
        kind: which rule is broken.
        text: what was found; MariaDB's own message where there is one.
        file: name of the file, or None when it is about the directory.
        page: page number in that file, where pages apply.
        offset: byte in the page, or in the file where pages do not apply; None: all of it.
        lost: the GTIDs that cannot be read for it, or `NOTHING`, or what is known of them.
    """

    kind: Kind
    text: str
    file: str | None = None
    page: int | None = None
    offset: int | None = None
    lost: str = NOTHING

    @property
    def severity(self) -> Severity:
        """How grave it is: as its kind, but nothing by which groups are lost is a mere warning."""
        severity = self.kind.severity
        if severity is Severity.WARNING and self.lost != NOTHING:
            return Severity.DAMAGE
        return severity

    @classmethod
    def at(cls, kind: Kind, place: Place, text: str, *, lost: str = NOTHING) -> "Finding":
        """Return a finding at a byte of a page."""
        return cls(
            kind=kind,
            text=text,
            file=binlog_name(place.file_no),
            page=place.page_no,
            offset=place.offset,
            lost=lost,
        )

    @classmethod
    def in_page(cls, kind: Kind, file_no: int, page_no: int, text: str) -> "Finding":
        """Return a finding about a whole page."""
        return cls(kind=kind, text=text, file=binlog_name(file_no), page=page_no)

    @classmethod
    def in_file(cls, kind: Kind, file_no: int, text: str) -> "Finding":
        """Return a finding about a whole file."""
        return cls(kind=kind, text=text, file=binlog_name(file_no))
