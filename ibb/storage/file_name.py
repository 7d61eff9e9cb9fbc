"""Names of binlog files: `binlog-000000.ibb`, `binlog-000001.ibb`, ... Source: ibb-format 3.1."""

import re

FILE_NO_MAX = 2**64 - 2  # 2**64 - 1 means "none" in headers
_LOOSE = re.compile(r"binlog-([0-9]+)\.ibb", re.ASCII)


def binlog_name(file_no: int) -> str:
    """Return the name of file *file_no*: at least six digits, more above 999999."""
    return f"binlog-{file_no:06d}.ibb"


def parse_binlog_name(name: str) -> int | None:
    """
    Return the number in a binlog file's name, or None if it is not one.

    Only the canonical spelling counts: a server that lists `binlog-7.ibb` as number 7 would open
    `binlog-000007.ibb`.
    """
    match = _LOOSE.fullmatch(name)
    if match is None or len(match[1]) > len(str(FILE_NO_MAX)):
        return None
    file_no = int(match[1])
    return file_no if file_no <= FILE_NO_MAX and binlog_name(file_no) == name else None


def is_misspelt(name: str) -> bool:
    """Tell whether MariaDB would count *name* as a binlog file and then look for another name."""
    return _LOOSE.fullmatch(name) is not None and parse_binlog_name(name) is None
