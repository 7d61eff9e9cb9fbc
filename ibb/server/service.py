"""`ibb serve` without its command line: open what there is, serve it, end in order."""

from __future__ import annotations

import asyncio
import signal
import stat
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from ibb.heap import keep_what_is_there
from ibb.protocol.errors import IbbError
from ibb.storage.belongings import check_holds_binlog
from ibb.storage.options import StoreOptions
from ibb.storage.os_disk import OsDisk
from ibb.storage.read_only import ReadOnlyHistory
from ibb.storage.store import Store

from .config import ConfigError
from .config_file import read_password_file
from .connections.descriptors import raise_limit
from .listening import TakenAddresses
from .log import get_log
from .login.accounts import AccountBook, check_made_up_account
from .measured_disk import MeasuredDisk
from .relay.relay_control import RelayControl
from .relay.upstream import UpstreamAddress
from .relay.upstream_tls import UpstreamTls
from .reloading import Hangups, Reloading
from .server import Server
from .storage_figures import StorageFigures
from .store_place import check_store
from .systemd import Systemd

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from socket import socket

    from .config import Config
    from .web.admin_listener import AdminListener


async def serve(
    directory: str,
    config: Config,
    on_ready: Callable[[Server], None],
    read_again: Callable[[], Config] | None = None,
) -> None:
    """
    Serve *directory* until SIGTERM or SIGINT; SIGHUP reads settings and accounts again.

    systemd is told when it is ready, reloads, stops, and that it lives.

    Args:
        directory: of the `.ibb` files; made if it is missing, unless read only.
        config: settings.
        on_ready: called once connections are accepted.
        read_again: returns the settings as they are written at SIGHUP, which may have changed.

    Raises:
        ConfigError: the settings do not fit together.
        IbbError: the directory cannot be served, or an address not be had.
        OSError: another server listens on the unix socket.
    """
    tls = UpstreamTls.from_config(config)  # whether or not an upstream is named: SQL may name one
    address = upstream_address(config, tls)
    if config.upstream and config.upstream_password_file:
        _warn_of_open_file(config.upstream_password_file)
    accounts = AccountBook.load(config.accounts) if config.accounts else None
    if accounts is None:
        check_made_up_account(config)
    raise_limit()
    # Before a store is made, or recovers: for want of an address it would have been for nothing.
    with closing(await TakenAddresses.of(config)) as taken, _opened(directory, config) as opened:
        history, figures = opened
        server = Server(history, config=config, accounts=accounts, place=_absolute(directory))
        server.storage = figures
        stopping = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stopping.set)
        systemd = Systemd()
        hangups = Hangups(Reloading(server, read_again), systemd, lambda: _status(server))
        loop.add_signal_handler(signal.SIGHUP, hangups.note)
        await server.start(taken.clients)
        if isinstance(history, Store):
            server.upstream = RelayControl(history, server, address, tls)
            server.upstream.start()
        admin = None
        try:
            admin = await _admin_listener(server, taken.admin)
            keep_what_is_there()
            on_ready(server)
            hangups.begin()
            await _until(stopping, server.upstream)
        finally:
            systemd.stopping()
            await hangups.close()
            if admin is not None:
                await admin.stop()
            if server.upstream is not None:
                await server.upstream.stop()
            await server.stop()
            await systemd.close()


async def _admin_listener(server: Server, bound: list[socket]) -> AdminListener | None:
    """Return the pages for administrators, which have begun; None where nobody asks for them."""
    if not server.config.admin_listen:
        return None
    try:
        from .web.admin_listener import AdminListener  # noqa: PLC0415 - needs an extra
    except ModuleNotFoundError as error:
        raise ConfigError(
            f"admin_listen needs {error.name}: install the extra `web`, from a checkout with "
            "pip install '.[web]'"
        ) from error
    admin = AdminListener(server)
    await admin.start(bound)
    return admin


def _status(server: Server) -> str:
    """Return a line for `systemctl status`."""
    host, port = server.address
    return f"serving {server.place} on {host}:{port}"


async def _until(stopping: asyncio.Event, upstream: RelayControl | None) -> None:
    """Return when told to stop; raises what a relay did not expect."""
    waiting = asyncio.create_task(stopping.wait())
    if upstream is None:
        await waiting
        return
    failing = asyncio.create_task(upstream.failed())
    await asyncio.wait({waiting, failing}, return_when=asyncio.FIRST_COMPLETED)
    if failing.done():
        waiting.cancel()
        failing.result()
    failing.cancel()


@contextmanager
def _opened(
    directory: str, config: Config
) -> Iterator[tuple[Store | ReadOnlyHistory, StorageFigures | None]]:
    """Open the directory, measured if it is a store, and close it in the end."""
    if config.read_only:
        check_holds_binlog(OsDisk(), directory)
        history = ReadOnlyHistory(OsDisk(), directory, follow_unsynced=config.follow_unsynced)
        try:
            yield history, None
        finally:
            history.close()
        return
    options, disk = store_options(config), MeasuredDisk(directory)
    check_store(disk, directory)
    store = Store.open(directory, options, disk=disk)
    for copy in store.copies_set_aside:
        get_log().warning("copy_set_aside", path=copy)
    for path in store.damaged_headers:
        get_log().warning("damaged_header_passed_over", path=path)
    try:
        yield store, StorageFigures(store, directory, disk, options)
    finally:
        try:
            store.close()
        except IbbError as error:
            get_log().error("store_failed", error=str(error))


def _warn_of_open_file(path: str) -> None:
    """Log that everybody may read a file with a password; secrets of containers often are so."""
    if Path(path).stat().st_mode & stat.S_IROTH:
        advice = "its mode lets everybody read it: make that 0600"
        get_log().warning("password_file_open", path=path, advice=advice)


def store_options(config: Config) -> StoreOptions:
    """
    Return what a store is opened with.

    Raises:
        ConfigError: settings do not fit together.
    """
    try:
        return StoreOptions(
            page_size=config.page_size,
            max_binlog_size=config.max_binlog_size,
            state_interval=max(config.state_interval, config.page_size),
            flush_log_at_commit=config.flush_log_at_commit,
            flush_log_interval=config.flush_log_interval,
            binlog_expire_logs_seconds=config.expire_seconds,
            max_binlog_total_size=config.max_binlog_total_size,
            slave_connections_needed_for_purge=config.slave_connections_needed_for_purge,
            format_description="upstream",  # a restart of ours is no restart of the writer
        )
    except ValueError as error:
        raise ConfigError(str(error)) from error


def _absolute(directory: str) -> str:
    return str(Path(directory).resolve())


def upstream_address(config: Config, tls: UpstreamTls) -> UpstreamAddress | None:
    """
    Return which upstream the settings name, None if none.

    Raises:
        ConfigError: it is no address, or its password's file cannot be read.
    """
    if not config.upstream:
        return None
    password = config.upstream_password
    if config.upstream_password_file:
        password = read_password_file(config.upstream_password_file)
    return UpstreamAddress.parse(config.upstream, password, tls)
