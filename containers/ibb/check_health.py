#!/opt/ibb/bin/python3
"""
Whether the server in this container lives: exit status 0, else 1 with a line that says why.

Asked is /healthz of the administrators' port, or where there is none whether clients are greeted.
"""

import socket
import ssl
import sys
import urllib.error
import urllib.request

ADMIN_URL = "https://127.0.0.1:8307/healthz"
PORT = 3307
SECONDS = 4.0
VERSION = 10  # of the protocol: the first byte behind a packet's header


def main() -> None:
    """Ask, and go away."""
    trusting = ssl.create_default_context()
    trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE  # it is this container
    try:
        with urllib.request.urlopen(ADMIN_URL, timeout=SECONDS, context=trusting):
            return  # other answers than 200 are errors
    except urllib.error.URLError as error:
        if not isinstance(error.reason, ConnectionRefusedError):
            sys.exit(f"{ADMIN_URL}: {error}")
    try:
        with socket.create_connection(("127.0.0.1", PORT), SECONDS) as connection:
            connection.settimeout(SECONDS)
            greeting = connection.recv(5)
    except OSError as error:
        sys.exit(f"port {PORT}: {error}")
    if greeting[4:] != bytes([VERSION]):
        sys.exit(f"port {PORT}: no greeting but {greeting!r}")


if __name__ == "__main__":
    main()
