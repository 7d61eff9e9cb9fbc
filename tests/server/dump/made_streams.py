"""Two ways to make the packets of a dump, and all that either says."""

from typing import NamedTuple

from ibb.protocol.gtid import GtidPosition
from ibb.server.dump.dump_batch import Outcome
from ibb.server.dump.dump_request import DumpRequest
from ibb.server.dump.dump_terms import DumpTerms
from ibb.server.dump.pacing import Pacing
from ibb.storage.clock import SystemClock

BATCHES_MAX = 100_000


class Made(NamedTuple):
    """What a stream made until it had no more, and where it was then."""

    data: bytes
    outcome: Outcome
    error: str | None
    sent: dict
    at: object
    heartbeat: bytes | None


def request(**changes):
    values = {
        "file_name": "",
        "position": 4,
        "server_id": 7,
        "non_block": True,
        "annotate": True,
        "connect_state": GtidPosition(),
        "until": None,
        "until_before": False,
        "strict": False,
        "ignore_duplicates": False,
        "capability": 4,
        "checksum": True,
        "skip_marked": False,
        "semi_sync": False,
        "needs_start_list": False,
        "join_fragments": False,
    }
    return DumpRequest(**(values | changes))


def stream(kind, history, asked):
    pace = Pacing(0, 0, SystemClock()).for_reader()
    return kind(DumpTerms(history, asked, 9, "10.11.9", now=77, pace=pace))


def made_by(kind, history, asked):
    """Return what a stream of a *kind* makes of a *history*."""
    one = stream(kind, history, asked)
    try:
        return rest_of(one, one.start())
    finally:
        one.close()


def rest_of(one, batch=None):
    """Return what a stream makes from a batch on."""
    data, sent = [], {}
    batch = batch or one.next_batch()
    for _ in range(BATCHES_MAX):
        data.append(batch.data)
        sent.update(batch.sent)
        if batch.outcome is not Outcome.MORE:
            break
        batch = one.next_batch()
    whole = one.at_boundary
    error = batch.error and f"{batch.error.code} {batch.error}"
    return Made(
        b"".join(data), batch.outcome, error, sent, batch.end, one.heartbeat() if whole else None
    )
