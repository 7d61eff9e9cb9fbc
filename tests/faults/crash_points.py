"""
Where a store was when the power went: a name for the place, from the calls under way.

The table tells a place by module and function; the first line that is among the calls wins. In
front of it comes what the store was doing on the whole. `Aim` takes the power at such a place.
"""

import sys
from collections.abc import Iterable
from types import CodeType, FrameType, TracebackType

Call = tuple[str, str]  # module, function

_PLACES = {
    ("backup", "copy_store"): "backup",
    ("reset_marker", "finish_deleting"): "reset delete",
    ("reset_marker", "write"): "reset marker",
    ("reset_marker", "remove"): "reset marker removed",
    ("engine", "remove_file"): "purge unlink",
    ("leases", "_replace"): "lease file",
    ("format_catalogue", "_store"): "sidecar",
    ("recovery", "_write_page"): "recovery page write",
    ("recovery", "_enter_file"): "recovery file change",
    ("recovery", "clear_behind"): "recovery clear",
    ("recovery", "replay"): "recovery read",
    ("redo", "prepare"): "redo preparation",
    ("redo", "begin_segment"): "redo header",
    ("redo", "_write"): "redo append",
    ("binlog_files", "truncate"): "truncate",
    ("binlog_files", "create"): "file create",
    ("binlog_files", "close"): "file close",
    ("binlog_files", "sync_all"): "checkpoint sync",
    ("page_flusher", "flush_partial"): "partial page flush",
    ("page_flusher", "flush"): "page flush",
    ("opening", "open_writer"): "look",
}

_WORK: list[tuple[set[Call], str]] = [
    ({("engine", "reset")}, "RESET"),
    ({("engine", "start"), ("engine", "switch_file")}, "take-over"),
    ({("store", "open")}, "opening"),
    ({("engine", "close")}, "closing"),
    ({("room", "checkpoint")}, "checkpoint"),
    ({("engine", "switch_file")}, "FLUSH"),
    ({("room", "make"), ("housekeeper", "make_file")}, "switch"),
]


def name_crash_point(trace: TracebackType | None) -> str:
    """Return the name of the place at the end of *trace*."""
    codes = []
    while trace is not None:
        codes.append(trace.tb_frame.f_code)
        trace = trace.tb_next
    return _name(codes)


class Aim:
    """
    Takes the power at a place; called before each operation of the disk, it answers whether now.

    Args:
        point: name of the place.
        nth: operation there at which it strikes.
    """

    def __init__(self, point: str, nth: int) -> None:
        self.point = point
        self._left = nth

    def __call__(self) -> bool:
        codes, frame = [], sys._getframe(1)
        current: FrameType | None = frame
        while current is not None:
            codes.append(current.f_code)
            current = current.f_back
        self._left -= _name(codes) == self.point
        return self._left <= 0


def _name(codes: Iterable[CodeType]) -> str:
    calls = {
        (code.co_filename.rpartition("/")[2].removesuffix(".py"), code.co_name) for code in codes
    }
    place = next((name for call, name in _PLACES.items() if call in calls), "read")
    work = next((name for needed, name in _WORK if needed <= calls), None)
    return place if work is None else f"{work}: {place}"
