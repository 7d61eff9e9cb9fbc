"""An event group that is being written, and what it holds by now."""

from __future__ import annotations

import random
from typing import NamedTuple

from ibb.protocol.gtid import Gtid
from ibb.protocol.gtid_event import GtidEvent
from ibb.storage.group_writer import GroupWriter, Savepoint

from ..storage.events import annotation, query, xid

GTID_FLAGS = 0x0C  # transactional, may run in parallel


class Mark(NamedTuple):
    """A savepoint and the bytes before it."""

    savepoint: Savepoint
    statement: int
    transaction: int


class OpenGroup:
    """
    Writes to both lists, cutting events anywhere.

    Args:
        writer: of the store.
        number: tells groups apart, for people.
        gtid: write a GTID event of that GTID first; None: the store shall make one.
    """

    def __init__(self, writer: GroupWriter, number: int, gtid: Gtid | None = None) -> None:
        self.writer = writer
        self.number = number
        self.gtid = gtid
        self.statement = bytearray()
        self.transaction = bytearray()
        self.marks: list[Mark] = []
        self._unsent = {True: b"", False: b""}
        if gtid is not None:
            writer.write(GtidEvent(gtid, 5, GTID_FLAGS).encode())

    @property
    def data(self) -> bytes:
        """The events of the group in the order in which readers get them."""
        return bytes(self.statement + self.transaction)

    def add(self, text: str, rng: random.Random, *, statement: bool) -> None:
        """Add an event; its end may be sent later."""
        event = annotation(text) if len(text) % 2 else query(text)  # the store tells them apart
        self._extend(event, statement=statement)
        unsent = self._unsent[statement]
        cut = len(unsent) if rng.random() < 0.5 else rng.randrange(len(unsent) + 1)
        self._unsent[statement] = unsent[cut:]
        self.writer.write(unsent[:cut], statement=statement)

    def save(self) -> None:
        self._send_all()
        mark = Mark(self.writer.savepoint(), len(self.statement), len(self.transaction))
        self.marks.append(mark)

    def go_back(self, rng: random.Random) -> None:
        number = rng.randrange(len(self.marks))
        mark = self.marks[number]
        del self.marks[number + 1 :]
        self.writer.rollback_to(mark.savepoint)
        del self.statement[mark.statement :], self.transaction[mark.transaction :]
        self._unsent = {True: b"", False: b""}

    def finish(self) -> None:
        """Add the event that ends the group."""
        statement_only = bool(self.statement) and not self.transaction and self.gtid is None
        self._extend(query("COMMIT") if statement_only else xid(7), statement=statement_only)
        self._send_all()

    def _extend(self, event: bytes, *, statement: bool) -> None:
        (self.statement if statement else self.transaction).extend(event)
        self._unsent[statement] += event

    def _send_all(self) -> None:
        for statement in (True, False):
            unsent, self._unsent[statement] = self._unsent[statement], b""
            if unsent:
                self.writer.write(unsent, statement=statement)
