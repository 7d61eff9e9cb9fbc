"""
Where a store was when the power went: a name for the place, from the calls under way.

The table tells a place by module and function; the first line that is among the calls wins. In
front of it comes what the store was doing on the whole.
"""

from types import TracebackType

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
    ("redo", "_lead"): "redo append",
    ("binlog_files", "truncate"): "truncate",
    ("binlog_files", "create"): "file create",
    ("binlog_files", "close"): "file close",
    ("binlog_files", "sync_all"): "checkpoint sync",
    ("page_flusher", "flush_partial"): "partial page flush",
    ("page_flusher", "flush"): "page flush",
    ("opening", "open_writer"): "look",
}

_WORK = {
    ("engine", "reset"): "RESET",
    ("store", "open"): "opening",
    ("engine", "switch_file"): "FLUSH",
    ("engine", "close"): "closing",
    ("engine", "checkpoint"): "checkpoint",
}


def name_crash_point(trace: TracebackType | None) -> str:
    """Return the name of the place at the end of *trace*."""
    calls = set()
    while trace is not None:
        code = trace.tb_frame.f_code
        calls.add((code.co_filename.rpartition("/")[2].removesuffix(".py"), code.co_name))
        trace = trace.tb_next
    place = next((name for call, name in _PLACES.items() if call in calls), "read")
    work = next((name for call, name in _WORK.items() if call in calls), None)
    return place if work is None else f"{work}: {place}"
