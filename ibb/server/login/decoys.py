"""
What users who do not exist seem to have, so that a login cannot find out who does.

Such a user has the methods of some account and salts of its own. Both follow from the name and a
secret of the accounts file, and so are the same at each visit, as those of an account are. Methods
are chosen by rendezvous hashing: each set of them that accounts have draws a number for the name,
and the greatest wins. One more account then changes nothing, or, if no other has its methods, only
those names that get them.
"""

from __future__ import annotations

import hmac
from typing import TYPE_CHECKING, Final, TypeAlias

from .auth_methods import DEFAULT_METHOD, METHODS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

SECRET_BYTES: Final = 32

# Names of methods and what they keep, in the order in which they are tried.
Auth: TypeAlias = tuple[tuple[str, str], ...]


def outline(auth: Auth) -> Auth:
    """Return what of *auth* shows without its password: the methods, and what they cost."""
    return _filled(auth, lambda _: bytes(SECRET_BYTES))


def decoy_auth(
    user: str, outlines: Iterable[Auth], secret: bytes, elsewhere: Auth | None = None
) -> Auth:
    """
    Return what *user* seems to have where no account is for him; the work is the same for all.

    Args:
        user: the name.
        outlines: those of the accounts that there are.
        secret: whoever knows it can tell users who exist from others.
        elsewhere: what he has in another network: that shows here, too, and no password fits.
    """
    made_up = max(outlines, key=lambda each: _digest(secret, user, each), default=_OF_NO_ACCOUNT)

    def seed_of(name: str) -> bytes | None:
        seed = _digest(secret, user, name)
        return seed if elsewhere is None else None

    return _filled(made_up if elsewhere is None else elsewhere, seed_of)


def _filled(auth: Auth, seed_of: Callable[[str], bytes | None]) -> Auth:
    return tuple((name, METHODS[name].decoy(text, seed_of(name))) for name, text in auth)


def _digest(secret: bytes, user: str, purpose: object) -> bytes:
    return hmac.digest(secret, repr((user, purpose)).encode(), "sha256")


_OF_NO_ACCOUNT: Final[Auth] = ((DEFAULT_METHOD, ""),)
