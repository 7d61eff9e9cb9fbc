#!/opt/ibb/bin/python3
"""
Whether the server in this container lives: exit status 0, else 1 with a line that says why.

Asked is /healthz of the administrators' port, or where there is none whether clients are greeted;
where that is, say the arguments by which `ibb serve` runs, and its file of settings.
"""

import argparse
import socket
import ssl
import sys
import tomllib
import urllib.request
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

PROCESSES = Path("/proc")
SECONDS = 4.0
VERSION = 10  # of the protocol: the first byte behind a packet's header
DEFAULT_LISTEN = "127.0.0.1:3307"
PORT, ADMIN_PORT = 3307, 8307  # of addresses that name none
ANY_ADDRESS = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - what others listen on


def main() -> None:
    """Ask, and go away."""
    settings = settings_of(server_arguments())
    where = settings.get("admin_listen", "")
    try:
        if where:
            is_encrypted = settings.get("ssl_cert") or settings.get("ssl_state")
            scheme = "https" if is_encrypted and not settings.get("skip_ssl") else "http"
            ask(scheme, *address_of(where, ADMIN_PORT))
        else:
            where = settings.get("listen", DEFAULT_LISTEN)
            await_greeting(*address_of(where, PORT))
    except (OSError, ValueError) as error:  # what urllib and ssl raise is an OSError
        sys.exit(f"{where}: {error}")


def server_arguments() -> list[str]:
    """Return what stands behind `ibb serve` in the list of processes."""
    for path in PROCESSES.glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().decode(errors="replace").rstrip("\0").split("\0")
        except OSError:  # it has just ended
            continue
        for number, (program, command) in enumerate(pairwise(words), 2):
            if command == "serve" and Path(program).name == "ibb":
                return words[number:]
    sys.exit("no `ibb serve` runs here")


def settings_of(arguments: Sequence[str]) -> dict[str, Any]:
    """Return what matters here, by the names of the file; the command line counts before it."""
    parser = argparse.ArgumentParser(
        allow_abbrev=False, add_help=False, argument_default=argparse.SUPPRESS
    )
    for name in ("--config", "--listen", "--admin-listen", "--ssl-cert", "--ssl-state"):
        parser.add_argument(name)
    parser.add_argument("--skip-ssl", action="store_true")
    options = vars(parser.parse_known_args(arguments)[0])
    file = options.pop("config", None)
    return (tomllib.loads(Path(file).read_text()) if file else {}) | options


def address_of(text: str, port: int) -> tuple[str, int]:
    """Return where this container reaches an address that is listened on."""
    host, colon, number = text.rpartition(":")
    if not colon or text.endswith("]"):
        host, number = text, str(port)
    host = host.strip("[]")
    return ANY_ADDRESS.get(host, host), int(number)


def ask(scheme: str, host: str, port: int) -> None:
    """Ask for /healthz; raises OSError unless the answer is 200."""
    trusting = ssl.create_default_context()
    trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE  # it is this container
    opener = urllib.request.build_opener(
        urllib.request.ProxyHandler({}),  # no proxy of the environment leads back to here
        urllib.request.HTTPSHandler(context=trusting),
    )
    place = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    opener.open(f"{scheme}://{place}/healthz", timeout=SECONDS).close()


def await_greeting(host: str, port: int) -> None:
    """Connect as a client does; raises OSError or ValueError if nobody says hello."""
    with socket.create_connection((host, port), SECONDS) as connection:
        connection.settimeout(SECONDS)
        greeting = connection.recv(5)
    if greeting[4:] != bytes([VERSION]):
        raise ValueError(f"no greeting but {greeting!r}")


if __name__ == "__main__":
    main()
