"""Log lines on stderr: `noun_verb` and key=value, as JSON or for people."""

from __future__ import annotations

import logging
import sys
from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import structlog
from structlog.tracebacks import ExceptionDictTransformer

if TYPE_CHECKING:
    from typing import TextIO

    from structlog.typing import EventDict, FilteringBoundLogger, Processor


class _Lines:
    """
    Writes lines to a file, if that is possible.

    A full disk or a closed pipe behind stderr must not end what is only told of: whoever logs
    may be in the middle of a commit or of a purge.
    """

    def __init__(self, file: TextIO) -> None:
        self._file = file

    def msg(self, line: str) -> None:
        """Write a line, or lose it."""
        with suppress(OSError):
            self._file.write(f"{line}\n")
            self._file.flush()

    debug = info = warning = error = critical = msg  # by these the bound logger calls it


PROBLEM_LEVELS: Final = ("warning", "error", "critical")
PROBLEMS_MAX: Final = 200  # level and event each, far more than the code has; the rest is `OTHER`
OTHER: Final = "other"
LINES: Final[Counter[str]] = Counter()  # written so far, by level
PROBLEMS: Final[Counter[tuple[str, str]]] = Counter()  # of these, by level and event


def _count(_: object, level: str, line: EventDict) -> EventDict:
    LINES[level] += 1
    if level in PROBLEM_LEVELS:
        problem = (level, str(line.get("event")))
        known = problem in PROBLEMS or len(PROBLEMS) < PROBLEMS_MAX
        PROBLEMS[problem if known else (level, OTHER)] += 1
    return line


def set_up_log(*, level: str, shape: str) -> None:
    """
    Send the log of this process to stderr.

    Args:
        level: least level that is written: debug, info, warning or error.
        shape: `json`, or `text` with colours where stderr is a terminal.
    """
    processors: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        _count,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    if shape == "json":
        processors += [
            structlog.processors.ExceptionRenderer(ExceptionDictTransformer(show_locals=False)),
            structlog.processors.JSONRenderer(default=str),
        ]
    else:
        # local variables stay out of tracebacks: there may be secrets in them
        processors.append(
            structlog.dev.ConsoleRenderer(
                colors=sys.stderr.isatty(), exception_formatter=structlog.dev.plain_traceback
            )
        )
    stderr = sys.stderr
    structlog.configure(
        processors=processors,
        wrapper_class=structlog.make_filtering_bound_logger(
            logging.getLevelNamesMapping()[level.upper()]
        ),
        logger_factory=lambda *_: _Lines(stderr),
        cache_logger_on_first_use=False,
    )


def get_log() -> FilteringBoundLogger:
    """Return a logger; what it writes goes where `set_up_log` said."""
    log: FilteringBoundLogger = structlog.get_logger()
    return log
