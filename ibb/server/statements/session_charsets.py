"""The character sets of one session: of what its client sends, means, and is sent."""

from __future__ import annotations

from typing import Final

from ibb.protocol.character_sets import (
    COLLATION_NAMES,
    COLLATIONS,
    DEFAULT_COLLATIONS,
    NO_CLIENT_CHARSETS,
    UTF8MB3,
    UTF8MB4,
    charset_of,
)
from ibb.protocol.error_codes import (
    COLLATION_CHARSET_MISMATCH,
    UNKNOWN_CHARACTER_SET,
    UNKNOWN_COLLATION,
    WRONG_VALUE_FOR_VAR,
)

_CLIENT: Final = "character_set_client"
_CONNECTION: Final = "character_set_connection"
_RESULTS: Final = "character_set_results"
_COLLATION: Final = "collation_connection"


class SessionCharsets:
    """
    What SET NAMES and its kin set.

    Args:
        login: collation id that the client logged in with; an unknown one is taken as UTF-8.

    Attributes:
        values: of the system variables that tell of them, by name; NULL is None.
        results: collation id of texts that the client is sent.
        system: the same, of those that the server says of itself.
    """

    def __init__(self, login: int) -> None:
        self._login = login if login in COLLATION_NAMES else UTF8MB4
        self.values: dict[str, str | None] = {}
        self.results = self.system = self._login
        self.take_login()

    @property
    def of_statements(self) -> str:
        """Character set of the statements that the client sends."""
        return self.values[_CLIENT] or charset_of(COLLATION_NAMES[UTF8MB4])

    @property
    def of_literals(self) -> str:
        """Character set that texts in a statement have."""
        return self.values[_CONNECTION] or charset_of(COLLATION_NAMES[UTF8MB4])

    @property
    def of_results(self) -> str:
        """Character set of what the client is sent."""
        return charset_of(COLLATION_NAMES[self.results])

    def take_login(self) -> None:
        """Go back to what the client logged in with: SET NAMES DEFAULT."""
        self._take(COLLATION_NAMES[self._login])

    def collation_of(self, charset: str, collation: str = "") -> str:
        """
        Return the collation that SET NAMES asks for.

        Args:
            charset: its name; empty for the one of the login.
            collation: its name; empty for the default one.

        Raises:
            SqlError: 1115 or 1273 unknown, 1231 for no client, 1253 they do not fit together.
        """
        if not charset:
            return COLLATION_NAMES[self._login]
        default = _default_collation(charset, _CLIENT)
        chosen = collation.lower() or default
        if chosen not in COLLATIONS:
            raise UNKNOWN_COLLATION.error(collation)
        if charset_of(chosen) != charset_of(default):
            raise COLLATION_CHARSET_MISMATCH.error(collation, charset)
        return chosen

    def take(self, collation: str, *, literals: bool = True) -> None:
        """
        Do SET NAMES with what `collation_of` returned.

        Args:
            collation: its name.
            literals: no SET CHARACTER SET, where literals get the character set of databases.
        """
        self._take(collation)
        if not literals:
            self._connect(COLLATION_NAMES[UTF8MB4])

    def check(self, name: str, value: str | None) -> None:
        """Raise SqlError if `assign` would, of a value that the variable may have by its kind."""
        if name in (_CLIENT, _CONNECTION, _RESULTS) and value is not None:
            _default_collation(value, name)

    def assign(self, name: str, value: str | None) -> bool:
        """
        Set one of the variables; return False if it is none of them.

        Raises:
            SqlError: 1115, 1231 or 1273, it cannot be that.
        """
        if name == _COLLATION:
            chosen = str(value).lower()
            if chosen not in COLLATIONS:
                raise UNKNOWN_COLLATION.error(value)
            self._connect(chosen)
            return True
        if name not in (_CLIENT, _CONNECTION, _RESULTS):
            return False
        if value is None:
            if name != _RESULTS:
                raise WRONG_VALUE_FOR_VAR.error(name, "NULL")
            self.values[name] = None  # as it is; what is no UTF-8 is converted to it all the same
            own = str(self.values[_COLLATION])
            self.results = _announced(own) if charset_of(own).startswith("utf8") else UTF8MB4
            self.system = UTF8MB3
            return True
        collation = _default_collation(value, name)
        if name == _CONNECTION:
            self._connect(collation)
        else:
            self.values[name] = charset_of(collation)
        if name == _RESULTS:
            self.results = self.system = _announced(collation)
        return True

    def _take(self, collation: str) -> None:
        self.values |= dict.fromkeys((_CLIENT, _RESULTS), charset_of(collation))
        self.results = self.system = _announced(collation)
        self._connect(collation)

    def _connect(self, collation: str) -> None:
        self.values |= {_CONNECTION: charset_of(collation), _COLLATION: collation}


def _announced(collation: str) -> int:
    """Return the id that clients are told, who know none of the newest collations."""
    return COLLATIONS["utf8mb4_unicode_ci" if "_uca1400_" in collation else collation]


def _default_collation(charset: str, variable: str) -> str:
    name = charset.lower()
    if name in NO_CLIENT_CHARSETS and variable == _CLIENT:
        raise WRONG_VALUE_FOR_VAR.error(_CLIENT, name)
    found = DEFAULT_COLLATIONS.get(name)
    if found is None:
        raise UNKNOWN_CHARACTER_SET.error(charset)
    return found
