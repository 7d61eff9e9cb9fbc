"""Each GTID state record held against the commit records before it. Source: ibb-format 5.2."""

from .binlog import Binlog, Problem
from .chunks import COMMIT, GTID_STATE, Chunk
from .contents import Gtid, State
from .fields import ci_size
from .files import BinlogFile, Place


class Running:
    """A GTID state: the newest number of each pair, that of each domain last."""

    def __init__(self, entries: tuple[Gtid, ...] = ()) -> None:
        self._seqs: dict[int, dict[int, int]] = {}
        self.load(entries)

    def load(self, entries: tuple[Gtid, ...]) -> None:
        for gtid in entries:
            servers = self._seqs.setdefault(gtid.domain, {})
            servers.pop(gtid.server, None)
            servers[gtid.server] = gtid.seq

    def entries(self) -> tuple[Gtid, ...]:
        return tuple(
            Gtid(domain, server, seq)
            for domain, servers in self._seqs.items()
            for server, seq in servers.items()
        )

    def entries_of(self, domains: set[int]) -> tuple[Gtid, ...]:
        return tuple(
            Gtid(domain, server, seq)
            for domain in domains
            for server, seq in self._seqs.get(domain, {}).items()
        )

    def remove(self, domain: int) -> None:
        del self._seqs[domain]

    def without_order_of_domains(self) -> dict[int, list[tuple[int, int]]]:
        return {domain: list(servers.items()) for domain, servers in self._seqs.items()}


class StateCheck:
    """
    Follows a binlog from its first chunk to its last.

    Attributes:
        left_out: pages on which one was due and had no room.
        deleted: domains that a full state does not have any more, and the number of its file.
        state: the state at the end.
        problems: wrong, missing and superfluous state records.
    """

    def __init__(self, binlog: Binlog) -> None:
        self.left_out: list[Place] = []
        self.deleted: list[tuple[int, int]] = []
        self.problems: list[Problem] = []
        self._binlog = binlog
        self._running: Running | None = None  # unknown before the first full state
        self._first: frozenset[Gtid] = frozenset()  # what it had
        self._since = Running()  # page 1 of this file
        self._base: Running | None = None  # the full state on it
        self._before: Chunk | None = None
        for chunk in binlog.chunks:
            self._step(chunk)
            self._before = chunk

    @property
    def state(self) -> tuple[Gtid, ...]:
        return self._running.entries() if self._running else ()

    def _report(self, place: Place, what: str) -> None:
        self.problems.append(Problem(place, what))

    def _step(self, chunk: Chunk) -> None:
        file = self._binlog.files[chunk.place.file_no]
        page, at = divmod(chunk.place.offset, file.page_size)
        begins_file = self._before is None or self._before.place.file_no != file.number
        if begins_file:
            self._since, self._base = Running(), None
        is_due = at == 0 and _has_state(file, page) and not self._is_inside_or_behind_state(chunk)
        if is_due:
            self._check_page(chunk, file, page, begins_file=begins_file)
        elif chunk.starts and chunk.type == GTID_STATE:
            if at == 0 and _has_state(file, page):  # a restart knows of no state that filled a page
                self._check_page(chunk, file, page, begins_file=False)
            else:
                self._report(chunk.place, "state record where none is due")
        if chunk.starts and chunk.type == COMMIT:
            commit = self._binlog.commits.get(chunk.place)
            if commit is not None and commit.gtid is not None:
                self._since.load((commit.gtid,))
                if self._running is not None:
                    self._running.load((commit.gtid,))

    def _is_inside_or_behind_state(self, chunk: Chunk) -> bool:
        """Tell whether a state record covers the page, or filled the one before to its end."""
        before = self._before
        if before is None or before.place.file_no != chunk.place.file_no:
            return False
        file = self._binlog.files[chunk.place.file_no]
        fills = before.end.offset % file.page_size == file.end
        continues = not chunk.starts and chunk.type == GTID_STATE
        return continues or (before.type == GTID_STATE and fills)

    def _check_page(self, chunk: Chunk, file: BinlogFile, page: int, *, begins_file: bool) -> None:
        found = self._binlog.states.get(chunk.place)
        is_first = self._running is None and begins_file
        if is_first and found is not None:
            self._running = Running(found.entries)
            self._first = frozenset(found.entries)
        elif is_first and file.number == 0:
            self._running = Running()
        if self._running is None:
            return
        if found is not None and page == 1:
            self._delete_domains(found, file.number)
        entries = self._running.entries() if page == 1 else self._since.entries()
        if found is None:
            if chunk.starts and chunk.type == GTID_STATE:
                return  # damaged: reported where it was read
            allowed = self._allowed(entries, is_full=page == 1)
            # Nobody says which XA file it would have named: none has a longer number than its own.
            if all(_has_room(some, file.number, file, page) for some in allowed):
                self._report(chunk.place, f"no state record, {len(entries)} entries are due")
            self.left_out.append(chunk.place)
            return
        if not _has_room(found.entries, found.xa, file, page):
            self._report(chunk.place, "state record where there is no room for it")
        if page == 1:
            self._base = Running(found.entries)
        self._check_entries(chunk.place, found, entries, is_full=page == 1)

    def _delete_domains(self, found: State, file_no: int) -> None:
        """Forget domains that are left out if no file has their groups. ibb-format 12.2."""
        assert self._running is not None
        entries = self._running.entries()
        there = {gtid.domain for gtid in found.entries}
        missing = {gtid.domain for gtid in entries} - there
        for domain in sorted(missing):
            if self._first.issuperset(gtid for gtid in entries if gtid.domain == domain):
                self._running.remove(domain)
                self.deleted.append((file_no, domain))

    def _check_entries(
        self, place: Place, found: State, entries: tuple[Gtid, ...], *, is_full: bool
    ) -> None:
        domains = [gtid.domain for gtid in found.entries]
        groups = [domain for at, domain in enumerate(domains) if domains[at - 1 : at] != [domain]]
        if len(set(groups)) != len(groups):
            self._report(place, "entries of a domain are not together")
        if not is_full and self._base is not None:
            assert self._running is not None
            concerned = {*domains, *(gtid.domain for gtid in entries)}  # others are as on page 1
            applied = Running(self._base.entries_of(concerned))
            applied.load(found.entries)
            running = Running(self._running.entries_of(concerned))
            if applied.without_order_of_domains() != running.without_order_of_domains():
                gives, wanted = applied.entries(), running.entries()
                self._report(place, f"differential state gives {gives}, not {wanted}")
        as_found = Running(found.entries).without_order_of_domains()
        allowed = self._allowed(entries, is_full=is_full)
        if as_found not in [Running(some).without_order_of_domains() for some in allowed]:
            self._report(place, f"state record of {found.entries}, not {entries}")

    def _allowed(self, entries: tuple[Gtid, ...], *, is_full: bool) -> list[tuple[Gtid, ...]]:
        """
        Return what a state record may hold that is due with *entries*.

        In a file without a full state a writer that was restarted cannot tell what was logged
        before this file, and may repeat all of it in the differential ones.
        """
        assert self._running is not None
        if is_full or self._base is not None:
            return [entries]
        return [entries, self._running.entries()]


def _has_state(file: BinlogFile, page: int) -> bool:
    interval = file.header.interval
    return page == 1 or (interval > 0 and page % interval == 0)


def _has_room(entries: tuple[Gtid, ...], xa: int | None, file: BinlogFile, page: int) -> bool:
    """
    Tell whether something fits behind the record.

    The format's rule is an estimate that forgets the chunk headers. Where those of hundreds of
    pages would push the record out of its file, it has no room either.
    """
    size = ci_size(len(entries)) + sum(ci_size(number) for gtid in entries for number in gtid)
    if file.header.major:
        size += ci_size(0 if xa is None else xa + 1)
    chunks = -(-size // (file.end - 3))
    left = file.header.page_count - page
    return -(-size // file.end) < left and size + 3 * chunks + 4 <= left * file.end
