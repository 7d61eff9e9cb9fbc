"""What a job tells that failed on a cluster: its own error in a line, without Spark's stacks."""

from __future__ import annotations

import re
from typing import Final

from ibb.protocol.errors import IbbError

LINE_MAX: Final = 2000  # characters
_RAISED: Final = re.compile(r"^(?:: )?(?:\w+\.)*(\w+): (\S.*)$", re.MULTILINE)
_OURS: Final = re.compile(r"^ibb\.(?:\w+\.)+\w+: (\S.*)$", re.MULTILINE)


class JobFailed(IbbError):  # noqa: N818 - a state of the world
    """A job on a cluster came to no end."""


def told_by(text: str) -> str:
    """
    Return the line that says why, of what Spark says about a failure.

    Args:
        text: a message with the stacks of several processes in it.
    """
    ours = _OURS.findall(text)
    if ours:
        return str(ours[0])[:LINE_MAX]
    raised = _RAISED.search(text)
    if raised is not None:
        return f"{raised[1]}: {raised[2]}"[:LINE_MAX]
    return next((line for line in text.splitlines() if line.strip()), "no reason given")[:LINE_MAX]
