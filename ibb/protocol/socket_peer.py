"""
unix_socket: the operating system tells who is at the other end, and the client has nothing to say.

The authentication string names the system's user; empty, it is the account's own name.
"""

from __future__ import annotations

import hmac
from typing import TYPE_CHECKING, Final

from .authentication import Verdict

if TYPE_CHECKING:
    from .authentication import Channel, Exchange

METHOD_NAME: Final = "unix_socket"
SYSTEM_USER_CHARS_MAX: Final = 128


class SocketPeer:
    """The method unix_socket."""

    name = METHOD_NAME
    plugin = ""
    salt_bytes = 0
    challenge_bytes = 0
    costly = False

    def make(self, password: str, salt: bytes) -> str:
        """Return the authentication string: for this method *password* is the system's user."""
        assert not salt
        return password

    def check_text(self, text: str) -> None:
        """Raise ValueError if *text* cannot be a user of the system."""
        if not (0 < len(text) <= SYSTEM_USER_CHARS_MAX and text.isprintable()):
            raise ValueError("not a system user's name")

    def decoy(self, model: str, seed: bytes | None) -> str:
        """Return the name of no user: the system's lists of users separate fields by it."""
        del model, seed
        return ":"

    def exchange(self, text: str, challenge: bytes, channel: Channel) -> Exchange:
        """Ask nothing."""
        del challenge
        yield from ()  # a generator like the others', with nothing to say
        proven = hmac.compare_digest(text.encode(), channel.peer_user.encode())
        return Verdict(proven and bool(channel.peer_user))

    def trust_key(self, text: str) -> bytes:
        """Return nothing: there is no certificate on a unix socket."""
        del text
        return b""
