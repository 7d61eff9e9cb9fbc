"""The check of a directory with and without `SoundPages`: it makes no difference but to time."""

from contextlib import contextmanager
from typing import NamedTuple
from unittest.mock import patch

from ibb.storage.verify import Finding, Totals, verify_directory
from ibb.storage.verify.groups import TreeCheck
from ibb.storage.verify.sound_pages import SoundPages
from ibb.storage.verify.sound_run import SoundRun

from ...faults.sim_disk import SimDisk


class Told(NamedTuple):
    """What a check says."""

    findings: list[Finding]
    totals: Totals
    last: str  # the state of the totals, with its order
    steps: list[tuple[int, int]]


def checked(disk, path):
    totals, steps = Totals(), []
    found = list(
        verify_directory(disk, path, totals=totals, progress=lambda *step: steps.append(step))
    )
    return Told(found, totals, str(totals.last), steps)


def both_ways(disk, path):
    """Return what a check says, which says the same without the kernel."""
    told = checked(disk, path)
    with patch.object(SoundPages, "wants", lambda _self, _page_no: False):
        assert checked(disk, path) == told
    return told


class Counts:
    """
    What the two ways had to do.

    Attributes:
        sound: pages over which the kernel went.
        trees: groups that were read once more.
    """

    def __init__(self):
        self.sound = self.trees = 0


@contextmanager
def counted():
    """Count what is done inside."""
    counts, run, check = Counts(), SoundRun.run, TreeCheck.check

    class CountingRun:
        def __init__(self):
            self._run = SoundRun()

        def __getattr__(self, name):
            return getattr(self._run, name)

        def run(self, data, first, end):
            before = self._run.page
            code = run(self._run, data, first, end)
            counts.sound += self._run.page - before
            return code

    def counting_check(self, place):
        counts.trees += 1
        return check(self, place)

    with (
        patch("ibb.storage.verify.sound_pages.SoundRun", CountingRun),
        patch.object(TreeCheck, "check", counting_check),
    ):
        yield counts


def disk_of(images):
    """Return a disk with files by their paths."""
    disk = SimDisk()
    for path, image in images.items():
        disk.open(path, create=True).write_at(0, image)
    return disk
