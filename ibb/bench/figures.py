"""Figures of several rounds, their ratios, and the goals that they are held against."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple


class Verdict(StrEnum):
    """Whether a goal is reached; `NONE` where there is no goal, or nothing to compare with."""

    MET = "met"
    SHORT = "short"
    NONE = "-"


class Spread(NamedTuple):
    """Least, median and most of some values."""

    least: float
    median: float
    most: float

    @classmethod
    def of(cls, values: list[float]) -> Spread | None:
        """Return that of *values*, None if there are none."""
        if not values:
            return None
        return cls(min(values), statistics.median(values), max(values))


@dataclass(frozen=True)
class Goal:
    """
    What a figure must reach.

    Args:
        bound: of the ratio to mariadbd, or of our own value.
        of_ratio: which of the two.
        at_least: the bound is the least that will do; else the most.
        moonshot: what is hoped for; None: nothing more.
    """

    bound: float
    of_ratio: bool
    at_least: bool
    moonshot: float | None = None

    def __str__(self) -> str:
        """Return it as the table shows it."""
        sign = ">=" if self.at_least else "<="
        return f"{sign} {self.bound:g}{' x' if self.of_ratio else ''}"

    def holds(self, value: float) -> bool:
        """Tell whether *value* reaches it."""
        return value >= self.bound if self.at_least else value <= self.bound


def ratio(at_least: float, moonshot: float | None = None) -> Goal:
    """Return the goal to be *at_least* times as much as mariadbd."""
    return Goal(at_least, of_ratio=True, at_least=True, moonshot=moonshot)


def ratio_at_most(bound: float, moonshot: float | None = None) -> Goal:
    """Return the goal to be *bound* times mariadbd's or less."""
    return Goal(bound, of_ratio=True, at_least=False, moonshot=moonshot)


def value(at_least: float, moonshot: float | None = None) -> Goal:
    """Return the goal of a value of our own."""
    return Goal(at_least, of_ratio=False, at_least=True, moonshot=moonshot)


def value_at_most(bound: float, moonshot: float | None = None) -> Goal:
    """Return the goal of a value of our own that must not be larger."""
    return Goal(bound, of_ratio=False, at_least=False, moonshot=moonshot)


class Sample(NamedTuple):
    """
    A figure of one round.

    Attributes:
        name: of the figure within its row.
        unit: of the values.
        ours: this side.
        theirs: mariadbd in the same round; None where it has nothing to compare.
        goal: what must be reached.
    """

    name: str
    unit: str
    ours: float
    theirs: float | None = None
    goal: Goal | None = None


@dataclass
class Figure:
    """One line of the table: the samples of all rounds."""

    row: str
    name: str
    unit: str
    goal: Goal | None = None
    ours: list[float] = field(default_factory=list)
    theirs: list[float] = field(default_factory=list)

    def add(self, sample: Sample) -> None:
        """Take the sample of one more round; a side's values are all there or none is."""
        assert (sample.theirs is None) == (not self.theirs) or not self.ours
        self.ours.append(sample.ours)
        if sample.theirs is not None:
            self.theirs.append(sample.theirs)

    def ratios(self) -> list[float]:
        """Return ours by theirs, round by round: never across rounds, which may differ."""
        if not self.theirs:
            return []
        return [a / b for a, b in zip(self.ours, self.theirs, strict=True) if b]

    def verdict(self) -> Verdict:
        """Judge the median."""
        if self.goal is None:
            return Verdict.NONE
        values = self.ratios() if self.goal.of_ratio else self.ours
        spread = Spread.of(values)
        if spread is None:
            return Verdict.NONE
        return Verdict.MET if self.goal.holds(spread.median) else Verdict.SHORT
