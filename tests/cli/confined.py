"""
The system calls that `deploy/ibb.service` leaves a program, without systemd that runs it.

`unit_filter` makes what seccomp is given, of the unit's lines and systemd's own lists of calls;
as a program, `confined.py FILTER COMMAND...`, this file puts it on and becomes the command.
"""

import ctypes
import os
import re
import shutil
import struct
import subprocess
import sys
from pathlib import Path

UNIT = Path(__file__).parents[2] / "deploy" / "ibb.service"
WITHOUT = "no systemd-analyze on this machine: it comes with Debian's package systemd"
_LOAD, _AND, _RETURN, _EQUAL, _ANY_BIT = 0x20, 0x54, 0x06, 0x15, 0x45
_NUMBER, _PROTECTION = 0, 32  # where seccomp's data has the call's number and third argument
_ALLOW, _DENY = 0x7FFF0000, 0x00050001  # EPERM, as SystemCallErrorNumber
_WRITE_AND_EXECUTE, _EXECUTE = 6, 4
_NO_NEW_PRIVILEGES, _SECCOMP, _BY_FILTER = 38, 22, 2  # of prctl


def unit_filter() -> bytes | None:
    """Return the filter for SystemCallFilter and MemoryDenyWriteExecute; None without systemd."""
    if shutil.which("systemd-analyze") is None:
        return None
    numbers, calls = _numbers(), _allowed(UNIT.read_text())
    program = [
        (_LOAD, 0, 0, _NUMBER),
        (_EQUAL, 0, 5, numbers["mmap"]),
        (_LOAD, 0, 0, _PROTECTION),
        (_AND, 0, 0, _WRITE_AND_EXECUTE),
        (_EQUAL, 0, 1, _WRITE_AND_EXECUTE),
        (_RETURN, 0, 0, _DENY),
        (_RETURN, 0, 0, _ALLOW),
        (_EQUAL, 0, 4, numbers["mprotect"]),
        (_LOAD, 0, 0, _PROTECTION),
        (_ANY_BIT, 0, 1, _EXECUTE),
        (_RETURN, 0, 0, _DENY),
        (_RETURN, 0, 0, _ALLOW),
    ]
    for name in sorted(calls & numbers.keys()):
        program += [(_EQUAL, 0, 1, numbers[name]), (_RETURN, 0, 0, _ALLOW)]
    program.append((_RETURN, 0, 0, _DENY))
    return b"".join(
        struct.pack("=HBBI", code, true, false, value) for code, true, false, value in program
    )


def _allowed(unit: str) -> set[str]:
    """Return the names of the calls that a unit allows."""
    first, *others = re.findall(r"^SystemCallFilter=(.+)$", unit, re.MULTILINE)
    calls = _members(first)
    for line in others:
        calls = calls - _members(line[1:]) if line.startswith("~") else calls | _members(line)
    return calls


def _members(names: str) -> set[str]:
    """Return the calls in systemd's sets, which name sets in their turn."""
    found: set[str] = set()
    for name in names.split():
        if name.startswith("@"):
            command = ["systemd-analyze", "syscall-filter", name]
            shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
            found |= _members(" ".join(re.findall(r"^ +([@\w-]+)$", shown, re.MULTILINE)))
        else:
            found.add(name)
    return found


def _numbers() -> dict[str, int]:
    """Return the number of each call on this machine."""
    done = subprocess.run(
        ["gcc", "-E", "-dM", "-"],
        input="#include <sys/syscall.h>",
        capture_output=True,
        text=True,
        check=True,
    )
    said = dict(re.findall(r"^#define (__NR\w+) (\w+)$", done.stdout, re.MULTILINE))
    return {
        name.removeprefix("__NR_"): int(said.get(value, value))  # some are called as others
        for name, value in said.items()
        if name.startswith("__NR_") and said.get(value, value).isdigit()
    }


def _confine(instructions: bytes) -> None:
    """Put this process and what it becomes under a filter."""
    code = ctypes.create_string_buffer(instructions, len(instructions))
    program = struct.pack("@HP", len(instructions) // 8, ctypes.addressof(code))
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    prctl.argtypes = (ctypes.c_int, *4 * (ctypes.c_ulong,))
    header = ctypes.create_string_buffer(program, len(program))
    for call in (
        (_NO_NEW_PRIVILEGES, 1, 0, 0, 0),
        (_SECCOMP, _BY_FILTER, ctypes.addressof(header), 0, 0),
    ):
        if prctl(*call):
            raise OSError(ctypes.get_errno(), "prctl")


if __name__ == "__main__":
    _confine(Path(sys.argv[1]).read_bytes())
    os.execvp(sys.argv[2], sys.argv[2:])
