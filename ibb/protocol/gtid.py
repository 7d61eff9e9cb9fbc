"""
Global transaction ids `D-S-N` and positions: at most one id a domain, "the last one I have".

Source: dump-protocol 6 (texts), ibb-format 8 (meaning).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from .errors import SqlError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

ID_MAX: Final = 2**32 - 1  # domain and server ids
SEQ_MAX: Final = 2**64 - 1
LIST_ENTRIES_MAX: Final = 1 << 20  # GTIDs in one textual list

_GTID: Final = re.compile(r"\s*([0-9]{1,20})-([0-9]{1,20})-([0-9]{1,20})\s*", re.ASCII)


class Gtid(NamedTuple):
    """Global transaction id: the group number *seq* that *server* logged in *domain*."""

    domain: int
    server: int
    seq: int

    @classmethod
    def parse(cls, text: str) -> Gtid:
        """
        Read `D-S-N`, decimal, unsigned 32, 32 and 64 bits; blanks around it are allowed.

        Raises:
            SqlError: 1941, the text is anything else.
        """
        match = _GTID.fullmatch(text)
        if match is None:
            raise _unparsable()
        domain, server, seq = map(int, match.groups())
        if domain > ID_MAX or server > ID_MAX or seq > SEQ_MAX:
            raise _unparsable()
        return cls(domain, server, seq)

    def __str__(self) -> str:
        return f"{self.domain}-{self.server}-{self.seq}"


def parse_gtid_list(text: str) -> list[Gtid]:
    """
    Read GTIDs separated by commas, in the order written; a blank *text* is the empty list.

    Raises:
        SqlError: 1941, an entry is not a GTID or there are more than `LIST_ENTRIES_MAX`.
    """
    if not text.strip():
        return []
    if text.count(",") >= LIST_ENTRIES_MAX:
        raise _unparsable()
    return [Gtid.parse(entry) for entry in text.split(",")]


class GtidPosition:
    """
    A replication position: at most one GTID a domain, the last one somebody has.

    Domains keep the order in which they were first set. Two positions are equal when they hold
    the same GTIDs in whatever order.
    """

    __slots__ = ("_by_domain",)

    def __init__(self, gtids: Iterable[Gtid] = ()) -> None:
        self._by_domain: dict[int, Gtid] = {gtid.domain: gtid for gtid in gtids}

    @classmethod
    def parse(cls, text: str) -> GtidPosition:
        """
        Read a list such as `0-1-5, 7-2-9`; a blank text is the empty position.

        Raises:
            SqlError: 1941 when it is not a GTID list, 1943 when a domain occurs twice.
        """
        position = cls()
        for gtid in parse_gtid_list(text):
            earlier = position.get(gtid.domain)
            if earlier is not None:
                raise SqlError(
                    1943,
                    "HY000",
                    f"GTID {gtid} and {earlier} conflict (duplicate domain id {gtid.domain})",
                )
            position.set(gtid)
        return position

    def get(self, domain: int) -> Gtid | None:
        """Return the GTID held for *domain*, or None."""
        return self._by_domain.get(domain)

    def set(self, gtid: Gtid) -> None:
        """Hold *gtid* for its domain, in place of what was held."""
        self._by_domain[gtid.domain] = gtid

    def remove(self, domain: int) -> None:
        """Hold nothing for *domain* any more; it need not have been held."""
        self._by_domain.pop(domain, None)

    def copy(self) -> GtidPosition:
        """Return an independent position with the same GTIDs."""
        return GtidPosition(self)

    def __contains__(self, domain: object) -> bool:
        return domain in self._by_domain

    def __iter__(self) -> Iterator[Gtid]:
        return iter(self._by_domain.values())

    def __len__(self) -> int:
        return len(self._by_domain)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, GtidPosition):
            return NotImplemented
        return self._by_domain == other._by_domain

    __hash__ = None  # type: ignore[assignment]  # it changes

    def __str__(self) -> str:
        return ",".join(map(str, self))

    def __repr__(self) -> str:
        return f"GtidPosition({str(self)!r})"


def _unparsable() -> SqlError:
    return SqlError(1941, "HY000", "Could not parse GTID list")
