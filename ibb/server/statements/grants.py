"""SHOW GRANTS and SHOW CREATE USER; hashes of passwords are left out of both."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ibb.protocol.error_codes import (
    DBACCESS_DENIED_ERROR,
    NONEXISTING_GRANT,
    PASSWORD_NO_MATCH,
)
from ibb.protocol.result_set import Column, ResultSet

if TYPE_CHECKING:
    from ibb.server.login.accounts import Account
    from ibb.server.sql.ast import Show
    from ibb.server.sql.context import Context

_CHARS: Final = 1024


def show_grants(statement: Show, context: Context) -> ResultSet:
    """Answer SHOW GRANTS; raises SqlError 1141 for nobody, 1044 without the privilege."""
    found = _found(statement, context)
    if found is None:
        raise NONEXISTING_GRANT.error(*_parts(statement.name))
    grants = ", ".join(sorted(found.grants)) or "USAGE"
    if found.may("ALL PRIVILEGES"):
        grants = "ALL PRIVILEGES"
    line = f"GRANT {grants} ON *.* TO `{found.user}`@`{found.host}`"
    return _one_line(f"Grants for {found.user}@{found.host}", line, context)


def show_create_user(statement: Show, context: Context) -> ResultSet:
    """Answer SHOW CREATE USER; raises SqlError 1133 for nobody, 1044 without the privilege."""
    found = _found(statement, context)
    if found is None:
        raise PASSWORD_NO_MATCH.error()
    line = f"CREATE USER `{found.user}`@`{found.host}`"
    return _one_line(f"CREATE USER for {found.user}@{found.host}", line, context)


def _found(statement: Show, context: Context) -> Account | None:
    """Return the account that is asked about; others are only for who may everything."""
    account = context.account
    assert account is not None
    if statement.name in ("", f"{account.user}@{account.host}"):
        return account
    if not account.may("ALL PRIVILEGES"):
        raise DBACCESS_DENIED_ERROR.error(account.user, account.host, "mysql")
    named = _parts(statement.name)
    return next((one for one in context.facts.accounts if (one.user, one.host) == named), None)


def _parts(name: str) -> tuple[str, str]:
    user, _, host = name.rpartition("@")
    return user, host


def _one_line(title: str, line: str, context: Context) -> ResultSet:
    column = Column.text(title, _CHARS, collation=context.variables.system_charset)
    return ResultSet([column], [(line,)], context.variables.status)
