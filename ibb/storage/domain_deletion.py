"""Which domains can be forgotten: those of which no file can hold groups. ibb-format 12.2."""

from collections.abc import Iterable

from ibb.protocol.binlog_state import BinlogState

from .errors import DomainInUse
from .page_source import PageSource
from .state_scan import read_state


def deletable_domains(
    source: PageSource, state: BinlogState, domains: Iterable[int]
) -> tuple[frozenset[int], list[int]]:
    """
    Return the domains that can be deleted, and those that are not known.

    Args:
        source: the files; the oldest one's full state tells what was before them all.
        state: the GTID state now.
        domains: those asked for.

    Raises:
        DomainInUse: a pair has logged something since the oldest file began.
    """
    wanted = list(dict.fromkeys(domains))
    unknown = [domain for domain in wanted if state.newest(domain) is None]
    known = frozenset(wanted).difference(unknown)
    if known:
        first = read_state(source, source.first_file(), 1)
        before = set(first.entries) if first is not None else set()
        for gtid in state.entries():
            if gtid.domain in known and gtid not in before:
                raise DomainInUse(gtid.domain)
    return known, unknown
