"""GTID states whose record has a given size, to the byte."""

from ibb.protocol.gtid import Gtid

from ..oracle.fields import ci_size

LONGEST = 5 + 5 + 9  # bytes of an entry: domain, server, sequence number
DOMAIN_OF_5 = 1 << 31
DOMAINS = {1: 8, 2: 1 << 6, 3: 1 << 14, 4: 1 << 22, 5: DOMAIN_OF_5}
SEQS = {1: 1, 2: 1 << 6, 3: 1 << 14, 4: 1 << 22, 5: 1 << 30, 6: 1 << 38, 7: 1 << 46, 9: 1 << 60}
SHAPES = {  # bytes of an entry -> bytes of domain and sequence number; the server takes 1 or 5
    domain + server + seq: (domain, server, seq)
    for server in (5, 1)
    for domain in DOMAINS
    for seq in SEQS
}


def entries_of_size(size: int, *first: Gtid) -> list[Gtid]:
    """Return *first* and so many more that a state record without XA reference has *size* bytes."""
    left = size - 1 - sum(ci_size(number) for gtid in first for number in gtid)
    for count in range(len(first), size):
        needed = left - ci_size(count)
        others = count - len(first)
        if 3 * others <= needed <= LONGEST * others:
            return [*first, *_entries(needed, others)]
    raise AssertionError(size)


def _entries(size: int, count: int) -> list[Gtid]:
    """Return *count* entries of *size* bytes, all pairs different."""
    entries = []
    for number in range(count):
        others = count - number - 1
        wanted = next(
            wanted
            for wanted in range(LONGEST, 2, -1)
            if wanted in SHAPES and 3 * others <= size - wanted <= LONGEST * others
        )
        domain, server, seq = SHAPES[wanted]
        pair = number if server == 5 else 0
        entries.append(Gtid(DOMAINS[domain], (1 << 30) + pair if server == 5 else 1, SEQS[seq]))
        size -= wanted
    assert size == 0
    return entries
