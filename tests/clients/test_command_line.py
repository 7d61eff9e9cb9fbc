"""The command line clients of both versions do with a relay what they do with its primary."""

import os
import subprocess
from typing import NamedTuple

import pytest

from ibb.demo.installation import Installation

from .conftest import SECRET

pytestmark = [pytest.mark.live, pytest.mark.xdist_group("clients")]

SECONDS = 30.0
ROW = "SELECT 1 AS one, 'wörd <&>' AS word, NULL AS nothing, 1.50 AS amount, 'a\\tb' AS tab"
SCRIPT = "SELECT 1;\nSET @a = 'ü'; SELECT @a\\G\nnonsense;\nDELIMITER //\nSELECT 2//\n"


class Done(NamedTuple):
    """What a program left: all of it must be the same."""

    status: int
    out: str
    errors: str


def run(installation: Installation, program, server, *arguments, stdin="", user="admin"):
    """Run a client program against one of the servers."""
    done = subprocess.run(
        installation.command(
            program,
            "--no-defaults",
            "--host=127.0.0.1",
            f"--port={server.port}",
            f"--user={user}",
            *arguments,
        ),
        input=stdin,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
        env=os.environ | {"MYSQL_PWD": SECRET},
    )
    port = str(server.port)
    return Done(
        done.returncode, done.stdout.replace(port, "PORT"), done.stderr.replace(port, "PORT")
    )


@pytest.fixture(scope="module", params=["mariadb_10", "mariadb_11"])
def installation(request):
    return request.getfixturevalue(request.param)


@pytest.mark.parametrize(
    "options",
    [
        (),
        ("--table",),
        ("--xml",),
        ("--html",),
        ("--vertical",),
        ("--raw", "--skip-column-names"),
        ("--quick", "--compress"),
        ("--safe-updates",),
        ("--reconnect", "--init-command=SET @a = 1"),
        ("--default-character-set=latin1",),
        ("--ssl",),
        ("--skip-ssl",),
    ],
    ids=" ".join,
)
def test_a_result_is_shown_alike(site, installation, options):
    wanted, found = (
        run(installation, "mariadb", server, *options, f"--execute={ROW}; SHOW WARNINGS")
        for server in (site.primary, site.ibb)
    )
    assert found == wanted
    assert found.status == 0, found.errors
    assert "1.50" in found.out


@pytest.mark.parametrize("options", [(), ("--force",), ("-vvv", "--table", "--force")])
def test_a_script_runs_alike(site, installation, options):
    timeless = ("sec)",)  # lines that end in how long it took
    wanted, found = (
        run(installation, "mariadb", server, *options, stdin=SCRIPT)
        for server in (site.primary, site.ibb)
    )
    assert found.status == wanted.status == (0 if "--force" in options else 1)
    assert found.errors == wanted.errors
    assert "ERROR 1064 (42000)" in found.errors
    assert [line for line in found.out.splitlines() if not line.endswith(timeless)] == [
        line for line in wanted.out.splitlines() if not line.endswith(timeless)
    ]


@pytest.mark.parametrize(
    ("options", "user", "error"),
    [
        (("--execute=SHOW BINLOG STATUS",), "nobody", "ERROR 1227 (42000)"),
        (("--execute=FLUSH BINARY LOGS",), "nobody", "ERROR 1227 (42000)"),
        (("--execute=KILL 4294967290",), "admin", "ERROR 1094 (HY000)"),
        (("--execute=SELECT * FROM a.b",), "admin", "ERROR 1146 (42S02)"),
        (("--password=wrong", "--execute="), "admin", "ERROR 1045 (28000): Access denied"),
    ],
)
def test_an_error_is_told_alike(site, installation, options, user, error):
    wanted, found = (
        run(installation, "mariadb", server, *options, user=user)
        for server in (site.primary, site.ibb)
    )
    assert found.status == wanted.status == 1
    assert error in found.errors
    # Names of hosts are looked up by `ibb`, and not by the primary.
    assert found.errors.replace("localhost", "127.0.0.1") == wanted.errors


def test_tls_is_spoken_as_asked(site, installation):
    version = ("--skip-column-names", "--execute=SHOW STATUS LIKE 'Ssl_version'")
    for options, shown in (
        (("--ssl",), "Ssl_version\tTLSv1.3\n"),
        (("--skip-ssl",), "Ssl_version\t\n"),
    ):
        assert run(installation, "mariadb", site.ibb, *options, *version).out == shown


@pytest.mark.parametrize(
    "words",
    [
        ("ping",),
        ("kill", "4294967290"),
        ("flush-hosts",),
        ("flush-logs",),
        ("flush-binary-log",),
        ("flush-status",),
        ("flush-privileges",),
        ("flush-tables",),
        ("flush-threads",),
        ("refresh",),
        ("reload",),
        ("no-such-command",),
    ],
    ids=" ".join,
)
def test_mariadb_admin_does_alike(site, installation, words):
    wanted, found = (
        run(installation, "mariadb-admin", server, *words) for server in (site.primary, site.ibb)
    )
    assert found == wanted


def test_mariadb_admin_is_refused_alike(site, installation):
    for words in (("flush-logs",), ("refresh",)):
        wanted, found = (
            run(installation, "mariadb-admin", server, *words, user="nobody")
            for server in (site.primary, site.ibb)
        )
        assert found == wanted
        assert "RELOAD privilege" in found.errors


def test_mariadb_admin_shows_the_server(site, installation):
    def shown(*words):
        done = run(installation, "mariadb-admin", site.ibb, *words)
        assert done.status == 0, done.errors
        return done.out

    assert "Protocol version\t10" in shown("version")
    assert shown("status").startswith("Uptime: ")
    assert "show full processlist" in shown("processlist", "--verbose").lower()
    assert "| gtid_strict_mode " in shown("variables")
    assert "| Slaves_connected " in shown("extended-status")


def test_mariadb_show_lists_what_there_is(site, installation):
    assert "| information_schema |" in run(installation, "mariadb-show", site.ibb).out


def test_mariadb_dump_finds_no_tables_and_says_so(site, installation):
    done = run(installation, "mariadb-dump", site.ibb, "clients")
    assert done.status != 0
    assert "Unknown database 'clients'" in done.errors
