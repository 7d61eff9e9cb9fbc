"""
Files that go by themselves: the settings, which SET GLOBAL changes, and what is logged of it.

Old files go when a new one is made, when a setting changes, and at least once in
`LOOK_SECONDS`: what held one back may have let it go. Leases that are too old lapse then, too.
"""

from __future__ import annotations

import asyncio
import threading
from decimal import Decimal
from typing import TYPE_CHECKING, Final

from ibb.protocol.error_codes import OPTION_PREVENTS_STATEMENT
from ibb.protocol.errors import IbbError
from ibb.storage.purge import PurgeSettings
from ibb.storage.store import Store

from .background_task import BackgroundTask
from .dump.dump_lease import logged_name
from .log import get_log

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from ibb.storage.history import History
    from ibb.storage.leases import Lease
    from ibb.storage.purge import PurgeResult

    from .sql.types import SqlValue

PURGE_VARIABLES: Final = (
    "binlog_expire_logs_seconds",
    "expire_logs_days",
    "max_binlog_total_size",
    "slave_connections_needed_for_purge",
)
LOOK_SECONDS: Final = 60.0
NAMES_LOGGED_MAX: Final = 100  # files of one purge, and reasons against one file
_DAYS: Final = "expire_logs_days"
_SECONDS: Final = "binlog_expire_logs_seconds"
_DAY_SECONDS: Final = 86_400
_NOTHING: Final = PurgeSettings(0, 0, 1)


class AutomaticPurge:
    """
    The purge settings of one server.

    Settings and what is told may come from any thread.

    Args:
        history: what is served; the files of another program never go by themselves.
        days: `expire_logs_days` as it was configured, 0 if it was not.

    Attributes:
        removed: files that went by themselves so far.
        freed: their bytes.
        failures: purges that an error ended.
        held_back: what keeps a file that should go, and does not go away by writing on.
    """

    def __init__(self, history: History, *, days: float = 0.0) -> None:
        self.removed = self.freed = self.failures = 0
        self.held_back: tuple[str, ...] = ()
        self._store = history if isinstance(history, Store) else None
        settings = self._store.purger.settings if self._store is not None else _NOTHING
        self._configured = (settings, Decimal(str(days)) or _days(settings))
        self._days = self._configured[1]
        self._mutex = threading.Lock()
        self._last: PurgeResult | None = None  # that was told
        self._held_back: tuple[str, set[str]] = ("", set())  # a file and the reasons logged
        self._looking = BackgroundTask("purge_looks")

    @property
    def _settings(self) -> PurgeSettings:
        return _NOTHING if self._store is None else self._store.purger.settings

    def value(self, name: str) -> SqlValue:
        """Return the value of one of `PURGE_VARIABLES`."""
        if name == _DAYS:
            return self._days.quantize(Decimal("0.000001"))
        value: int = self._settings._asdict()[name]
        return value

    def set(self, name: str, value: SqlValue) -> None:
        """
        Change one of `PURGE_VARIABLES` and purge by it; blocks.

        Args:
            name: of the variable.
            value: already checked.

        Raises:
            SqlError: 1290, the files are another program's.
        """
        assert isinstance(value, int | Decimal)
        with self._mutex:
            if name == _DAYS:
                days = Decimal(value)
                settings = self._settings._replace(**{_SECONDS: int(days * _DAY_SECONDS)})
            else:
                settings = self._settings._replace(**{name: int(value)})
                days = _days(settings) if name == _SECONDS else self._days
            self._change(settings, days)
        self._look(wait=True)  # a purge at work may go by the setting of before

    def configure(self, name: str, value: SqlValue) -> None:
        """Do as `set`, and have DEFAULT mean what is in force then."""
        self.set(name, value)
        with self._mutex:
            self._configured = (self._settings, self._days)

    def reset(self, name: str) -> None:
        """
        Change one of `PURGE_VARIABLES` back to what was configured, and purge by it; blocks.

        Raises:
            SqlError: 1290, the files are another program's.
        """
        settings, days = self._configured
        self.set(name, days if name == _DAYS else settings._asdict()[name])

    def _change(self, settings: PurgeSettings, days: Decimal) -> None:
        if self._store is None:
            raise OPTION_PREVENTS_STATEMENT.error("--read-only")
        self._store.purger.settings = settings
        self._days = days

    def start(self, pool: Executor) -> None:
        """Log what purges do, and look from time to time whether a file may go, in *pool*."""
        if self._store is None:
            return
        self._store.purger.tell = self._tell
        before = self._store.purger.last_automatic
        if before is not None:
            self._tell(before)
        self._looking.start(self._look_again(pool))

    async def stop(self) -> None:
        """Look no more."""
        await self._looking.stop()

    async def _look_again(self, pool: Executor) -> None:
        while True:
            try:
                await asyncio.get_running_loop().run_in_executor(pool, self._look)
            except Exception:  # noqa: BLE001 - the next look may fare better, whatever it is
                get_log().exception("purge_look_failed")
            await asyncio.sleep(LOOK_SECONDS)

    def _look(self, *, wait: bool = False) -> None:
        assert self._store is not None
        try:
            log_lapsed(self._store.leases.lapse())
        except IbbError as error:
            get_log().error("leases_not_stored", error=str(error))
        self._store.purger.purge_automatically(wait=wait)

    def _tell(self, result: PurgeResult) -> None:
        """Log what an automatic purge did; what holds a file back only once."""
        log_lapsed(result.lapsed)
        with self._mutex:
            if result is self._last:
                return
            self._last = result
            self.removed += len(result.removed)
            self.freed += result.freed
            self.failures += result.failure is not None
            self.held_back = tuple(result.lasting)
            file, known = self._held_back
            if result.kept != file:
                known = set()
            reasons = [reason for reason in result.lasting if reason not in known]
            self._held_back = (result.kept or "", known.union(reasons))
        if result.removed:
            log_removed(result, "binlog_purged_automatically")
        if result.failure is not None:
            get_log().error("purge_failed", error=result.failure)
        if reasons:
            shown = [logged_name(reason) for reason in reasons[:NAMES_LOGGED_MAX]]
            get_log().warning("purge_held_back", file=result.kept, reasons=shown)


def log_removed(result: PurgeResult, event: str, **more: object) -> None:
    """Log which files a purge has removed."""
    names = result.removed
    get_log().info(
        event,
        files=names[:NAMES_LOGGED_MAX],
        removed=len(names),
        bytes_freed=result.freed,
        **more,
    )


def log_lapsed(leases: list[Lease]) -> None:
    """Log which leases hold nothing any more."""
    for lease in leases:
        get_log().warning(
            "lease_lapsed", lease=logged_name(lease.name), age_limit_seconds=lease.age_limit
        )


def _days(settings: PurgeSettings) -> Decimal:
    return Decimal(settings.binlog_expire_logs_seconds) / _DAY_SECONDS
