"""
Statements that change the binlog or the server: FLUSH, PURGE, RESET MASTER, leases, SET GLOBAL.

They block, and are for a thread of the pool. A directory that another program writes is not ours
to change: MariaDB's error 1290 says so.
"""

from __future__ import annotations

from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Final

from ibb.protocol.binlog_state import BinlogState
from ibb.protocol.error_codes import (
    BINLOG_IN_USE,
    BINLOG_IN_USE_TRX,
    INCORRECT_GLOBAL_LOCAL_VAR,
    LOCAL_VARIABLE,
    NOT_SUPPORTED_YET,
    OPTION_PREVENTS_STATEMENT,
    SLAVE_HEARTBEAT_VALUE_OUT_OF_RANGE_MAX,
    SLAVE_MUST_STOP,
    UNKNOWN_ERROR,
    UNKNOWN_TARGET_BINLOG,
    WRONG_TYPE_FOR_VAR,
    WRONG_VALUE_FOR_VAR,
)
from ibb.protocol.errors import IbbError, SqlError
from ibb.protocol.gtid import GtidPosition
from ibb.server.automatic_purge import log_lapsed, log_removed
from ibb.server.config import ConfigError
from ibb.server.log import get_log
from ibb.server.sql.ast import CreateLease, DropLease, Flush, Purge, ResetMaster
from ibb.server.sql.evaluator import evaluate
from ibb.server.sql.functions_time import moment_of
from ibb.server.sql.system_variables import FIXED, own_name
from ibb.server.sql.time_zone import seconds_of
from ibb.server.sql.types import as_number, as_text
from ibb.server.sql.variable_values import checked_value, find_variable
from ibb.storage.errors import (
    DomainInUse,
    LeaseError,
    StoreBusy,
    StoreNotEmpty,
    UnknownFile,
)
from ibb.storage.leases import AGE_LIMIT_SECONDS
from ibb.storage.store import Store

from .privileges_needed import require, require_for_variable
from .variables import global_value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ibb.server.sql.context import Context
    from ibb.server.sql.types import Typed
    from ibb.storage.purge import PurgeResult

AdminStatement = Flush | Purge | ResetMaster | CreateLease | DropLease

_NOT_PURGED: Final = 1375  # ER_BINLOG_PURGE_PROHIBITED: a note's number
_DOMAIN_NOT_DELETED: Final = 1076  # ER_BINLOG_CANT_DELETE_GTID_DOMAIN
_WRONG_VALUE: Final = 1292
_BINLOG_MUST_BE_EMPTY: Final = 1956
_LEASE_LAPSED: Final = 1105


def administer(statement: AdminStatement, context: Context) -> None:
    """
    Do what *statement* asks.

    Raises:
        SqlError: 1227 without the privilege, or why it cannot be done.
    """
    try:
        match statement:
            case Flush():
                require("FLUSH", context)
                _flush(statement, context)
            case Purge():
                require("PURGE", context)
                _purge(statement, context)
            case ResetMaster():
                require("RESET", context)
                _reset(statement, context)
            case CreateLease():
                require("BINLOG LEASE", context)
                _create_lease(statement, context)
            case DropLease():
                require("BINLOG LEASE", context)
                _drop_lease(statement, context)
    except SqlError:
        raise
    except IbbError as error:
        raise UNKNOWN_ERROR.error(error) from error


def _store(context: Context) -> Store:
    history = context.facts.history
    if not isinstance(history, Store):
        raise OPTION_PREVENTS_STATEMENT.error("--read-only")
    return history


def _flush(statement: Flush, context: Context) -> None:
    if "HOSTS" in statement.what:
        context.facts.guard.clear()
    if not {"LOGS", "BINARY LOGS"} & set(statement.what):
        return
    try:
        unknown = _store(context).switch_file(statement.domains or ())
    except DomainInUse as error:
        raise SqlError(_DOMAIN_NOT_DELETED, "HY000", str(error)) from error
    for domain in unknown:
        text = f"The gtid domain being deleted ('{domain}') is not in the current binlog state"
        context.diagnostics.add("Warning", _DOMAIN_NOT_DELETED, text)
    get_log().info(
        "binlog_flushed", connection_id=context.connection_id, deleted_domains=statement.domains
    )


def _purge(statement: Purge, context: Context) -> None:
    if statement.to is not None:
        try:
            result = _store(context).purge_to(statement.to)
        except UnknownFile as error:
            raise UNKNOWN_TARGET_BINLOG.error() from error
    else:
        assert statement.before is not None
        value = evaluate(statement.before, context).value
        moment = moment_of(value)
        if value in (None, 0):
            return
        if moment is None:
            text = f"Incorrect datetime value: '{as_text(value)}'"
            context.diagnostics.add("Warning", _WRONG_VALUE, text)
            return
        result = _store(context).purge_before(seconds_of(moment, context.zone()))
    _tell(result, context)
    log_removed(result, "binlog_purged", connection_id=context.connection_id)
    log_lapsed(result.lapsed)


def _tell(result: PurgeResult, context: Context) -> None:
    """Say what had to stay, and for whom."""
    for lease in result.lapsed:
        text = f"Lease '{lease.name}' was not renewed in time and holds nothing any more"
        context.diagnostics.add("Warning", _LEASE_LAPSED, text)
    if result.kept is not None:
        reasons = "; ".join(result.reasons)
        text = f"Binary log '{result.kept}' is not purged because {reasons}"
        context.diagnostics.add("Note", _NOT_PURGED, text)


def _reset(statement: ResetMaster, context: Context) -> None:
    store = _store(context)
    if statement.number is not None:
        raise NOT_SUPPORTED_YET.error("RESET MASTER TO")
    facts = context.facts
    with facts.resetting:
        if facts.has_dumps():
            raise BINLOG_IN_USE.error()
        if facts.relay_runs:  # it would go on at a place that the history does not know
            raise SLAVE_MUST_STOP.error("", "")
        try:
            store.reset()
        except StoreBusy as error:
            raise BINLOG_IN_USE_TRX.error() from error
        facts.semi_sync.forget_history()
    get_log().warning("binlog_reset", connection_id=context.connection_id)


def _create_lease(statement: CreateLease, context: Context) -> None:
    store = _store(context)
    text = as_text(evaluate(statement.position, context).value)
    if text is None:
        raise UNKNOWN_ERROR.error("A lease is for a position, not for NULL")
    position = GtidPosition.parse(text)
    _check_known(position, store.state())
    age_limit: float | None = None if statement.never else AGE_LIMIT_SECONDS
    if statement.age_limit is not None:
        seconds = as_number(evaluate(statement.age_limit, context).value)
        age_limit = 0.0 if seconds is None else float(seconds)
    try:
        store.leases.renew(statement.name, position, age_limit=age_limit, replace=statement.replace)
    except LeaseError as error:
        raise UNKNOWN_ERROR.error(error) from error


def _check_known(position: GtidPosition, state: BinlogState) -> None:
    """Refuse a position that nobody can have from here: it would hold nothing for its holder."""
    for gtid in position:
        if state.newest(gtid.domain) is not None and not state.contains(gtid):
            raise UNKNOWN_ERROR.error(f"GTID {gtid} is not in the binlog")


def _drop_lease(statement: DropLease, context: Context) -> None:
    try:
        _store(context)
        assert context.facts.renewals is not None
        context.facts.renewals.drop(statement.name)
    except LeaseError as error:
        if not statement.if_exists:
            raise UNKNOWN_ERROR.error(error) from error
        context.diagnostics.add("Note", UNKNOWN_ERROR.code, str(error))


def global_assignment(name: str, typed: Typed | None, context: Context) -> Callable[[], None]:
    """
    Return what does SET GLOBAL, whose value has been checked; *typed* None is DEFAULT.

    Raises:
        SqlError: 1193 unknown, 1228 or 1238 not to be set so, 1227 without the privilege, 1231 or
            1232 a wrong value. What is fixed here takes the value that it has.
    """
    variable = find_variable(name)
    if not variable.server:
        raise LOCAL_VARIABLE.error(name)
    if variable.read_only:
        raise INCORRECT_GLOBAL_LOCAL_VAR.error(name, "read only")
    require_for_variable(name, context, is_global=True)
    own, facts = own_name(name), context.facts
    if own in ("gtid_binlog_state", "gtid_slave_pos"):
        text = None if typed is None else as_text(typed.value)
        if text is None:
            raise WRONG_TYPE_FOR_VAR.error(name)
        return partial(_set_state, own, _parsed_state(own, text, context), context)
    if typed is None:
        return partial(_change, name, context, partial(facts.reset_global, own))
    checked = checked_value(name, variable, typed.value, context)
    if own not in FIXED:
        with _refusing(name):
            facts.check_global(own, checked)
        return partial(_change, name, context, partial(facts.set_global, own, checked))
    if checked != global_value(name, context):
        raise INCORRECT_GLOBAL_LOCAL_VAR.error(name, "read only")
    return _nothing


def _nothing() -> None:
    """Leave a fixed variable as it is."""


@contextmanager
def _refusing(name: str) -> Iterator[None]:
    """Have a value that no setting may have be an error of SQL."""
    try:
        yield
    except ConfigError as error:
        raise WRONG_VALUE_FOR_VAR.error(name, error) from error


def _change(name: str, context: Context, do: Callable[[], None]) -> None:
    """Change a variable of the server's; tell what else that has changed."""
    period = context.facts.config.master_heartbeat_period
    with _refusing(name):
        do()
    if context.facts.config.master_heartbeat_period != period:
        warning = SLAVE_HEARTBEAT_VALUE_OUT_OF_RANGE_MAX.error()
        context.diagnostics.add("Warning", warning.code, warning.message)


def _parsed_state(name: str, text: str, context: Context) -> BinlogState:
    try:
        return BinlogState.parse(text)
    except SqlError:
        if name == "gtid_binlog_state" and context.facts.history.state().entries():
            raise SqlError(_BINLOG_MUST_BE_EMPTY, "HY000", str(StoreNotEmpty())) from None
        raise


def _set_state(name: str, state: BinlogState, context: Context) -> None:
    """Set where an empty binlog begins, or where its relay does."""
    if name == "gtid_slave_pos" and state == context.facts.history.state():
        return
    if name == "gtid_slave_pos" and not len(state) and not context.facts.relays:
        return
    try:
        _store(context).set_binlog_state(state)
    except StoreNotEmpty as error:
        raise SqlError(_BINLOG_MUST_BE_EMPTY, "HY000", str(error)) from error
    except StoreBusy as error:
        raise BINLOG_IN_USE_TRX.error() from error
