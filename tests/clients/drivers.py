"""
The SQL drivers of the client matrix, each behind the same few calls.

One process uses one driver: their C libraries bring OpenSSL versions that exclude each other.
"""

import asyncio
import importlib
import ssl
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

NATIVE = "mysql_native_password"
ED25519 = "ed25519"
SHA2 = "caching_sha2_password"
PARSEC = "parsec"
METHODS = (NATIVE, ED25519, SHA2, PARSEC)

TIMEOUT_SECONDS = 20


class Place(NamedTuple):
    """Where to log in, and as whom."""

    port: int
    user: str
    password: str
    certificate: str  # file of the one that both servers show
    plugins: str  # folder of the plugins by which libmariadb logs in


class Answer(NamedTuple):
    """What a statement brought: (name, type code) of each column, and the rows."""

    columns: list[tuple[str, object]]
    rows: list[tuple[object, ...]]


@dataclass(frozen=True)
class Driver:
    """
    One driver, and what it can do.

    Attributes:
        name: what `docs/clients.md` calls it.
        distribution: of the package whose version counts.
        methods: by which it can log in.
        connect: (place, tls) returns a connection; tls None leaves it to the driver.
        prepares: it has the prepared statement protocol.
        tls_by_itself: by default it speaks TLS where the server offers it.
        libraries: folder below site-packages of those that it brings and must find before the
            machine's: its OpenSSL is newer than the one that Python has loaded then.
        pool: (place) takes a connection from a pool twice and returns an answer of each.
        reset: brings a connection back to how it was after the login.
        reconnect: makes a connection whose server side was killed useful again.
    """

    name: str
    distribution: str
    methods: tuple[str, ...]
    connect: Callable[[Place, bool | None], Any]
    prepares: bool = False
    tls_by_itself: bool = False
    libraries: str = ""
    pool: Callable[[Place], list[Answer]] | None = None
    reset: Callable[[Any], object] | None = None
    reconnect: Callable[[Any], object] | None = None


def run(connection: Any, sql: str, values: Sequence[object] | None = None, **how: Any) -> Answer:
    """Execute one statement; *how*: more for the cursor."""
    if isinstance(connection, Async):
        return connection.run(sql, values)
    cursor = connection.cursor(**how)
    try:
        cursor.execute(sql, values) if values is not None else cursor.execute(sql)
        columns = [(column[0], column[1]) for column in cursor.description or ()]
        return Answer(columns, list(cursor.fetchall()) if columns else [])
    finally:
        cursor.close()


def _common(place: Place) -> dict[str, Any]:
    return {
        "host": "127.0.0.1",
        "port": place.port,
        "user": place.user,
        "password": place.password,
        "connect_timeout": TIMEOUT_SECONDS,
    }


def _pymysql(place: Place, tls: bool | None) -> Any:
    pymysql = importlib.import_module("pymysql")
    given = {None: {}, True: {"ssl_ca": place.certificate}, False: {"ssl_disabled": True}}[tls]
    return pymysql.connect(**_common(place), **given)


def _mysqlclient(place: Place, tls: bool | None) -> Any:
    mysqldb = importlib.import_module("MySQLdb")
    mode = {None: {}, True: {"ssl_mode": "REQUIRED"}, False: {"ssl_mode": "DISABLED"}}[tls]
    # There is no argument for the folder of plugins; the library reads it from the environment.
    return mysqldb.connect(**_common(place), **mode)


def _mariadb(place: Place, tls: bool | None) -> Any:
    mariadb = importlib.import_module("mariadb")
    given = {} if tls is None else {"ssl": tls}
    return mariadb.connect(**_common(place), plugin_dir=place.plugins, **given)


def _mariadb_pool(place: Place) -> list[Answer]:
    mariadb = importlib.import_module("mariadb")
    settings = _common(place) | {"pool_name": "matrix", "pool_size": 2}
    pool = mariadb.ConnectionPool(**settings, plugin_dir=place.plugins)
    return [_borrowed(pool.get_connection) for _ in range(2)]


def _connector(place: Place, tls: bool | None, *, pure: bool) -> Any:
    connector = importlib.import_module("mysql.connector")
    given: dict[str, Any] = {} if tls is None else {"ssl_disabled": not tls}
    if tls:
        given["ssl_ca"] = place.certificate
    settings = _common(place)
    settings["connection_timeout"] = settings.pop("connect_timeout")
    return connector.connect(**settings, use_pure=pure, **given)


def _connector_pool(place: Place, *, pure: bool) -> list[Answer]:
    pooling = importlib.import_module("mysql.connector.pooling")
    settings = _common(place)
    settings["connection_timeout"] = settings.pop("connect_timeout")
    pool = pooling.MySQLConnectionPool(pool_name="matrix", pool_size=2, use_pure=pure, **settings)
    return [_borrowed(pool.get_connection) for _ in range(2)]


def _borrowed(borrow: Callable[[], Any]) -> Answer:
    connection = borrow()
    try:
        return run(connection, "SELECT @left_behind, 'of a pool'")
    finally:
        run(connection, "SET @left_behind = 1")
        connection.close()


class Async:
    """A connection of a driver for asyncio, with a loop of its own."""

    def __init__(self, module: str, place: Place, tls: bool | None) -> None:
        self._loop = asyncio.new_event_loop()
        self._driver = importlib.import_module(module)
        given: dict[str, Any] = {}
        if tls:
            given["ssl"] = ssl.create_default_context(cafile=place.certificate)
            given["ssl"].check_hostname = False
        self.link = self.wait(self._driver.connect(**_common(place), **given))

    def wait(self, task: Any) -> Any:
        return self._loop.run_until_complete(asyncio.wait_for(task, TIMEOUT_SECONDS))

    def run(self, sql: str, values: Sequence[object] | None) -> Answer:
        return self.wait(_run_async(self.link, sql, values))

    def ping(self) -> None:
        self.wait(self.link.ping(reconnect=False))

    def reconnect(self) -> None:
        self.wait(self.link.ping(reconnect=True))

    def close(self) -> None:
        self.link.close()
        self._loop.close()


async def _run_async(link: Any, sql: str, values: Sequence[object] | None) -> Answer:
    async with link.cursor() as cursor:
        await cursor.execute(sql, values)
        columns = [(column[0], column[1]) for column in cursor.description or ()]
        return Answer(columns, list(await cursor.fetchall()) if columns else [])


def _async_pool(module: str, place: Place) -> list[Answer]:
    async def visit() -> list[Answer]:
        driver = importlib.import_module(module)
        pool = await driver.create_pool(**_common(place), minsize=1, maxsize=2)
        answers = []
        for _ in range(2):
            async with pool.acquire() as link:
                answers.append(await _run_async(link, "SELECT 'of a pool'", None))
        pool.close()
        await pool.wait_closed()
        return answers

    return asyncio.run(visit())


def _of_asyncio(module: str, *methods: str) -> Driver:
    return Driver(
        module,
        module,
        methods,
        lambda place, tls: Async(module, place, tls),
        pool=lambda place: _async_pool(module, place),
        reconnect=Async.reconnect,
    )


def _of_connector(name: str, *, pure: bool) -> Driver:
    return Driver(
        name,
        "mysql-connector-python",
        (NATIVE, SHA2),
        lambda place, tls: _connector(place, tls, pure=pure),
        prepares=True,
        tls_by_itself=True,
        libraries="" if pure else "mysql/vendor",
        pool=lambda place: _connector_pool(place, pure=pure),
        reset=lambda connection: connection.cmd_reset_connection(),
        reconnect=lambda connection: connection.reconnect(),
    )


DRIVERS = {
    driver.name: driver
    for driver in (
        Driver(
            "PyMySQL",
            "pymysql",
            (NATIVE, ED25519, SHA2),
            _pymysql,
            tls_by_itself=True,
            reconnect=lambda connection: connection.ping(reconnect=True),
        ),
        Driver("mysqlclient", "mysqlclient", (NATIVE, ED25519, SHA2), _mysqlclient),
        Driver(
            "MariaDB Connector/Python",
            "mariadb",
            (NATIVE, ED25519, SHA2),
            _mariadb,
            prepares=True,
            pool=_mariadb_pool,
            reset=lambda connection: connection.reset(),
            reconnect=lambda connection: connection.reconnect(),
        ),
        _of_connector("MySQL Connector/Python (pure)", pure=True),
        _of_connector("MySQL Connector/Python (C)", pure=False),
        _of_asyncio("aiomysql", NATIVE, SHA2),
        _of_asyncio("asyncmy", NATIVE, ED25519, SHA2),
    )
}
