"""docs/reference/sql.md: statements, functions, variables and tables, with their privileges."""

import asyncio
import tempfile
from collections.abc import Iterator

from ibb.protocol.error_codes import NOT_SUPPORTED_YET
from ibb.protocol.errors import SqlError
from ibb.server.automatic_purge import PURGE_VARIABLES
from ibb.server.config import Config
from ibb.server.login.accounts import AccountBook
from ibb.server.relay import change_master
from ibb.server.relay.relay_control import RelayControl
from ibb.server.relay.upstream import UpstreamAddress
from ibb.server.relay.upstream_tls import UpstreamTls
from ibb.server.server import Server
from ibb.server.sql import admin_parser, flush_parser, functions, show_parser, tables
from ibb.server.sql.system_variables import (
    FIXED,
    SYSTEM_VARIABLES,
    SystemVariable,
    VariableKind,
)
from ibb.server.statements import privileges_needed
from ibb.server.statements.live_settings import SETTINGS
from ibb.storage import Store, StoreOptions

from .markdown import NOTICE, code, table
from .sql_statements import FORMS

_STATUS_OF_SESSIONS = ("Ssl_cipher", "Ssl_version")
_BEHIND = {"F": "[LIKE ... | WHERE ...]", "L": "[LIMIT ...]", "D": "[FROM database]"}
INTRODUCTION = """\
# SQL

All that a session understands. What the answers mean, and where they differ from MariaDB's, is in
`docs/sql.md`. What is not here and is SQL gets error 1235.
"""
VARIABLES = """\
## System variables

`@@name`, `SHOW VARIABLES`, `information_schema.GLOBAL_VARIABLES`. *server*: SET GLOBAL changes what
the server does. *told*: SET GLOBAL is taken: clients are told so, new sessions begin with it, and
that is all. *session*: a session may have its own. *fixed*: it is shown, and any other value is
refused.
"""


def sql_page() -> str:
    """Return the page."""
    return "\n".join(
        [
            NOTICE,
            INTRODUCTION,
            "## Statements\n",
            table(("statement", "for", "needs"), map(_form, FORMS)),
            "## SHOW\n",
            table(("statement", "needs"), shows()),
            "## What FLUSH takes\n",
            "HOSTS, LOGS and BINARY LOGS do something; the others are taken and do nothing.\n",
            ", ".join(map(code, flushed())) + ".\n",
            "## Options of CHANGE MASTER\n",
            table(("option", "here"), map(_master_option, master_options())),
            VARIABLES,
            table(("variable", "set", "values"), map(_variable, sorted(SYSTEM_VARIABLES))),
            "## Status variables\n",
            "`SHOW GLOBAL STATUS`, of the server as a whole.\n",
            ", ".join(code(name) for name in status_names()) + ".\n",
            "## Functions\n",
            ", ".join(code(name) for name in function_names()) + ".\n",
            "## Tables of information_schema\n",
            "With rows:\n",
            ", ".join(code(name) for name in sorted(filled_tables())) + ".\n",
            "Empty, for tools that look into them:\n",
            ", ".join(code(name) for name in sorted(set(tables.TABLES) - filled_tables())) + ".\n",
        ]
    )


def _form(form: tuple[str, str, str, str]) -> tuple[str, str, str]:
    syntax, _, meaning, privilege = form
    return code(syntax), meaning, needs(privilege)


def needs(statement: str) -> str:
    """Return the privileges of which a statement needs one."""
    return " or ".join(privileges_needed._STATEMENTS.get(statement, ()))


def shows() -> Iterator[tuple[str, str]]:
    """Yield each SHOW that the parser has in its table, with the privileges for it."""
    for words, (what, behind) in sorted(show_parser._SHOWS.items()):
        syntax = " ".join(("SHOW", *words, *(_BEHIND[letter] for letter in behind)))
        yield code(syntax), needs(f"SHOW {what}")
    for other in (
        "SHOW GRANTS [FOR account]",
        "SHOW CREATE USER [account]",
        "SHOW CREATE DATABASE name",
        "SHOW CREATE TABLE name",
        "SHOW COUNT(*) WARNINGS",
        "SHOW COUNT(*) ERRORS",
        "SHOW RELAYLOG EVENTS",
    ):
        yield code(other), needs(other)


def flushed() -> list[str]:
    """Return what may stand behind FLUSH, but for lists of it."""
    return sorted({" ".join(words) for words in flush_parser._FLUSHED} | {"TABLES"})


def master_options() -> list[str]:
    """Return the options of CHANGE MASTER that the parser knows."""
    others = {"MASTER_USE_GTID", "IGNORE_SERVER_IDS", "IGNORE_DOMAIN_IDS"}
    return sorted(admin_parser._NUMBERS | admin_parser._TEXTS | others)


def _master_option(name: str) -> tuple[str, str]:
    """Return an option and what becomes of it, which is tried."""
    address = UpstreamAddress("primary", 3306, "repl", "", UpstreamTls())
    if name in change_master._FIXED_OPTIONS:
        values = [str(value) or "()" for value in change_master._FIXED_OPTIONS[name]]
        return code(name), f"{' or '.join(values)} alone: it changes nothing"
    try:
        change_master.change_master([(name, 1)], address, Config())
    except SqlError as error:
        if error.code != NOT_SUPPORTED_YET.code:
            raise
        return code(name), "refused"
    return code(name), "followed"


def _variable(name: str) -> tuple[str, str, str]:
    variable = SYSTEM_VARIABLES[name]
    return code(name), _set(name, variable), _values(variable)


def _set(name: str, variable: SystemVariable) -> str:
    words = []
    if variable.server and not variable.read_only and name not in FIXED:
        words.append("server" if name in ruling_names() else "told")
    if variable.session and not variable.read_only:
        words.append("session")
    return ", ".join(words) or "fixed"


def _values(variable: SystemVariable) -> str:
    if variable.kind is VariableKind.CHOICE:
        return ", ".join(variable.words)
    if variable.kind is VariableKind.SWITCH:
        return "ON, OFF"
    if variable.kind is VariableKind.TEXT:
        return "text"
    shown = "number" if variable.kind is VariableKind.NUMBER else "seconds"
    if variable.read_only:
        return shown
    return f"{shown}, {variable.least} to {variable.most}"


def ruling_names() -> frozenset[str]:
    """Return the variables by which the server goes when they are set."""
    others = ("gtid_binlog_state", "gtid_slave_pos", "max_prepared_stmt_count")
    return frozenset({*SETTINGS, *PURGE_VARIABLES, *others})


def status_names() -> list[str]:
    """Return the names of all status variables, of a relay too."""
    options = StoreOptions(page_size=512, max_binlog_size=1 << 16, state_interval=1024)
    with (
        tempfile.TemporaryDirectory() as folder,
        Store.open(folder, options) as store,
    ):
        return asyncio.run(_status_names(store))


async def _status_names(store: Store) -> list[str]:
    server = Server(store, accounts=AccountBook([]))
    server.upstream = RelayControl(store, server, None, UpstreamTls())
    names = sorted({*server.status(), *_STATUS_OF_SESSIONS}, key=str.lower)
    await server.upstream.stop()
    return names


def function_names() -> list[str]:
    """Return the names of all functions."""
    return sorted({*functions._FUNCTIONS, *functions._ELSEWHERE})


def filled_tables() -> set[str]:
    """Return the tables of information_schema that have rows."""
    return set(tables._ROWS)
