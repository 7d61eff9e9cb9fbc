"""
What mariadb-binlog reads from a server, in a form in which two servers can be compared.

The same history has other positions, files and checksums on another server; all else is equal:
every event's time, server id and body, in the same order.
"""

import base64
import re
import struct
import subprocess
import tempfile
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path

from ibb.demo.installation import Installation

from .mariadb_server import PASSWORD, USER

SECONDS_MAX = 120
LENGTH_OFFSET = 9  # of the event header's length field; log_pos follows
BODY_OFFSET = 17
MAGIC = b"\xfebin"
STOP, ROTATE, FORMAT_DESCRIPTION, CHECKPOINT, GTID, GTID_LIST = 3, 4, 15, 161, 162, 163
OF_ONE_FILE = {STOP, ROTATE, FORMAT_DESCRIPTION, CHECKPOINT, GTID_LIST}

HEADER = re.compile(
    rb"^(#\d{6} [ \d:]{8} server id \d+)  end_log_pos \d+ (?:CRC32 0x[0-9a-f]{8} )?\t?(.*)$",
    re.DOTALL,
)
OF_ONE_FILE_TEXT = (b"Rotate to", b"Start: binlog", b"Gtid list", b"Binlog checkpoint", b"Stop")
LOADED_FILE = re.compile(rb"(?<=LOCAL INFILE ')[^']*")
TEXT_END = b"DELIMITER ;"
# How base64 begins and ends; a START ALTER has it inside a versioned comment.
BINLOG_BEGIN = {b"BINLOG '": b"'/*!*/;", b"/*!100600 BINLOG '": b"' *//*!*/;"}


def mariadb_binlog(
    installation: Installation, port: int, *arguments: str
) -> subprocess.CompletedProcess[bytes]:
    """Run `mariadb-binlog --read-from-remote-server` to its end."""
    with tempfile.TemporaryDirectory() as folder:
        return subprocess.run(
            remote_command(installation, port, Path(folder), *arguments),
            capture_output=True,
            timeout=SECONDS_MAX,
            check=False,
        )


def remote_command(
    installation: Installation, port: int, folder: Path, *arguments: str
) -> list[str]:
    """
    Return the command line of mariadb-binlog against the server on loopback *port*.

    Args:
        folder: where the tool puts the files of LOAD DATA.
    """
    tls = ["--skip-ssl"] if installation.launcher else []
    return installation.command(
        *("mariadb-binlog", "--no-defaults", "--read-from-remote-server", *tls),
        *("--host=127.0.0.1", f"--port={port}", f"--user={USER}", f"--password={PASSWORD}"),
        f"--local-load={folder}",
        *arguments,
    )


def normalised(text: bytes) -> list[bytes]:
    """Return the lines of *text* less what belongs to one server's files."""
    found: list[bytes] = []
    lines = iter(text.split(b"\n"))
    kept = True
    for line in lines:
        header = HEADER.match(line)
        if header:
            kept = not header[2].startswith(OF_ONE_FILE_TEXT)
        elif line == TEXT_END:
            kept = True
        if line in BINLOG_BEGIN:
            encoded = list(iter(lambda: next(lines), BINLOG_BEGIN[line]))
            if kept:
                found += (bare(event).hex().encode() for event in decoded(encoded))
        elif kept and not line.startswith(b"# at "):
            found.append(b" ".join(header.groups()) if header else LOADED_FILE.sub(b"", line))
    return found


def decoded(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the events of one BINLOG statement: each begins on a line of its own."""
    pieces: list[bytes] = []
    size = 0
    for line in lines:
        pieces.append(base64.b64decode(line))
        size += len(pieces[-1])
        if size >= struct.unpack_from("<I", pieces[0], LENGTH_OFFSET)[0]:
            yield b"".join(pieces)
            pieces, size = [], 0
    assert not pieces, "a BINLOG statement ends inside an event"


def bare(event: bytes) -> bytes:
    """Return *event* without position and checksum."""
    if zlib.crc32(event[:-4]) == int.from_bytes(event[-4:], "little"):
        event = event[:-4]
    return event[:LENGTH_OFFSET] + struct.pack("<II", len(event), 0) + event[BODY_OFFSET:]


def raw_events(paths: Iterable[Path]) -> list[bytes]:
    """Return the bare events of binlog files, less those that belong to one server's files."""
    found = []
    for path in paths:
        data = path.read_bytes()
        assert data.startswith(MAGIC), path
        offset = len(MAGIC)
        while offset < len(data):
            (length,) = struct.unpack_from("<I", data, offset + LENGTH_OFFSET)
            assert offset + length <= len(data), f"{path} ends inside an event"
            if data[offset + 4] not in OF_ONE_FILE:
                found.append(bare(data[offset : offset + length]))
            offset += length
    return found


def gtids_in_order(paths: Iterable[Path]) -> list[str]:
    """Return the GTID of each group in binlog files, in their order."""
    found = []
    for event in raw_events(paths):
        if event[4] == GTID:
            (server,) = struct.unpack_from("<I", event, 5)
            seq, domain = struct.unpack_from("<QI", event, 19)
            found.append(f"{domain}-{server}-{seq}")
    return found
