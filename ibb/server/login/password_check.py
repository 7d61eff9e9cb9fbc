"""
A password that comes as it was typed, by a web page: whose account does it open?

Both halves of the account's own method are run against each other, so that no method needs a second
way to check a password. A user who does not exist costs as much as one who does: see `decoys`.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Final

from ibb.protocol.authentication import PASSWORD_BYTES_MAX, Channel
from ibb.protocol.client_login import CLIENT_EXCHANGES

from .accounts import REQUIRE_NOTHING, REQUIRE_X509

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ibb.protocol.authentication import Method, Verdict

    from .accounts import Account, AccountBook

USER_CHARS_MAX: Final = 128
_ROUNDS_MAX: Final = 8  # of one method; the longest has three
_SERVER: Final = Channel(private=True)
_CLIENT: Final = Channel(private=True, trusted=True)


def account_opened_by(
    accounts: AccountBook,
    methods: Mapping[str, Method],
    user: str,
    password: str,
    hosts: Sequence[str],
    *,
    encrypted: bool,
) -> Account | None:
    """
    Return the account of *user* that *password* opens, or None; blocks for some milliseconds.

    Args:
        accounts: all of them.
        methods: ways to log in, by name.
        user: as it was typed.
        password: the same.
        hosts: address and names by which the client is known.
        encrypted: TLS is on.
    """
    user = user[:USER_CHARS_MAX]
    account = accounts.find(user, hosts)
    decoy = accounts.decoy(user)  # for everybody, needed or not: it takes time
    auth = decoy if account is None else account.auth
    fits = 0 < len(password.encode()) <= PASSWORD_BYTES_MAX
    proven = [_proves(methods[name], text, password if fits else "x") for name, text in auth]
    if account is None or not (fits and any(proven)):
        return None
    if account.require == REQUIRE_X509 or (account.require != REQUIRE_NOTHING and not encrypted):
        return None
    return account


def _proves(method: Method, text: str, password: str) -> bool:
    """Tell whether a client with *password* would be let in by *method*."""
    if method.plugin not in CLIENT_EXCHANGES:
        return False
    challenge = bytes(33 + secrets.randbelow(94) for _ in range(method.challenge_bytes))
    server = method.exchange(text, challenge, _SERVER)
    said = next(server)
    client = CLIENT_EXCHANGES[method.plugin](password, said, _CLIENT)
    answer = next(client)
    for _ in range(_ROUNDS_MAX):
        try:
            said = server.send(answer)
        except StopIteration as end:
            verdict: Verdict = end.value
            return verdict.proven
        try:
            answer = client.send(said)
        except StopIteration:
            return False
    return False
