"""Real programs log in by every method and trust our certificate; we log in to real primaries."""

import os
import re
import signal
import socket
import subprocess
from pathlib import Path
from typing import NamedTuple

import pymysql
import pytest

from ibb.demo.installation import Installation
from ibb.demo.serve_process import run_ibb
from ibb.server.connections.certificate import self_signed
from ibb.server.login.accounts import AccountBook

from . import compare
from .mariadb_server import PASSWORD
from .stored_groups import stored_groups
from .waiting import wait_until

pytestmark = [pytest.mark.live, pytest.mark.xdist_group("logins")]

SECONDS = 30.0
SECRET = "s3cret-of-the-accounts"
UPSTREAM_SECRET = "s3cret-of-the-upstream"
METHODS = ("mysql_native_password", "ed25519", "parsec", "caching_sha2_password")
SCHEMA_GROUPS = 2
NAME = "ibb-bin.000001"


class Site(NamedTuple):
    """A primary that wants ed25519 and TLS, a relay, and the relay's accounts by method."""

    primary: object
    ibb: object
    rig: object
    certificate: Path
    key: Path


@pytest.fixture(scope="module")
def site(rig, mariadb_10, tmp_path_factory):
    folder = tmp_path_factory.mktemp("certificates")
    paths = [folder / "certificate.pem", folder / "key.pem"]
    for path, data in zip(paths, self_signed("localhost"), strict=True):
        path.write_bytes(data)
    certificate, key = paths
    primary = rig.primary(
        mariadb_10,
        "--plugin-load-add=auth_ed25519",
        f"--ssl-cert={certificate}",
        f"--ssl-key={key}",
    )
    primary.run(
        "SET sql_log_bin = 0",
        f"CREATE USER up@'%' IDENTIFIED VIA ed25519 USING PASSWORD('{UPSTREAM_SECRET}') "
        "REQUIRE SSL",
        "GRANT REPLICATION SLAVE, BINLOG MONITOR ON *.* TO up@'%'",
    )
    secret = folder / "upstream"
    secret.write_text(UPSTREAM_SECRET)
    ibb = rig.ibb(
        f"--upstream=mariadb://up@localhost:{primary.port}",
        f"--upstream-password-file={secret}",
        f"--upstream-ssl-ca={certificate}",
        f"--ssl-ca={certificate}",
        f"--socket={folder / 's'}",
    )
    for method in METHODS:
        add_account(ibb, method, "--method", method, "--require", "SSL")
    add_account(ibb, "shown", "--require", "X509")
    primary.run("CREATE DATABASE shop", "CREATE TABLE shop.t (a INT PRIMARY KEY) ENGINE=InnoDB")
    ibb.start()
    wait_until(lambda: len(stored_groups(ibb.directory)) == SCHEMA_GROUPS, SECONDS)
    return Site(primary, ibb, rig, certificate, key)


def add_account(ibb, user, *arguments):
    words = ("account", "add", "--file", str(ibb.folder / "accounts.toml"), "--password-stdin")
    done = run_ibb(*words, "--grant", "REPLICATION SLAVE", *arguments, user, stdin=SECRET)
    assert done.returncode == 0, done.stderr


def client_plugins(installation):
    """Return the folder of the plugins by which the installation's clients log in."""
    (folder,) = installation.base.glob("lib/*-linux-gnu/libmariadb3/plugin")
    return folder


def run(installation: Installation, program, site, user, *arguments, password=SECRET):
    """Run a client program against the relay; its own host name is none that clients exempt."""
    return subprocess.run(
        installation.command(
            program,
            "--no-defaults",
            f"--host={socket.gethostname()}",
            f"--port={site.ibb.port}",
            f"--user={user}",
            f"--password={password}",
            f"--plugin-dir={client_plugins(installation)}",
            *arguments,
        ),
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )


@pytest.fixture(params=["mariadb_10", "mariadb_11"])
def installation(request):
    return request.getfixturevalue(request.param)


def methods_of(installation, *, trusting):
    """Return the methods that the version has; *trusting*: those that prove a certificate."""
    methods = [name for name in METHODS if not (trusting and name == "caching_sha2_password")]
    if not (client_plugins(installation) / "parsec.so").exists():
        methods.remove("parsec")
    return methods


def test_the_command_line_logs_in_by_every_method(site, installation, mariadb_11):
    strict = installation is mariadb_11  # by default it wants TLS and a certificate that it trusts
    options = () if strict else ("--ssl",)
    for method in methods_of(installation, trusting=strict):
        done = run(installation, "mariadb", site, method, *options, "-Ne", "SELECT 7")
        assert (done.returncode, done.stdout) == (0, "7\n"), (method, done.stderr)
        done = run(installation, "mariadb", site, method, *options, "-e", "", password="wrong")
        assert "ERROR 1045 (28000): Access denied" in done.stderr, method
    if strict:
        done = run(installation, "mariadb", site, "caching_sha2_password", "-e", "SELECT 7")
        said = "The certificate is NOT trusted", "Failed to verify the server certificate"  # 11.8.9
        assert any(text in done.stderr for text in said), done.stderr
        done = run(
            installation,
            "mariadb",
            site,
            "caching_sha2_password",
            "--disable-ssl-verify-server-cert",
            "-Ne",
            "SELECT 7",
        )
        assert done.stdout == "7\n", done.stderr


def test_an_account_that_requires_tls_is_refused_without(site, installation):
    done = run(installation, "mariadb", site, "ed25519", "--skip-ssl", "-e", "SELECT 7")
    assert "ERROR 1045 (28000): Access denied" in done.stderr


def test_a_client_certificate_opens_its_account(site, installation):
    shown = (f"--ssl-cert={site.certificate}", f"--ssl-key={site.key}", "--ssl")
    done = run(installation, "mariadb", site, "shown", *shown, "-Ne", "SELECT 7")
    assert (done.returncode, done.stdout) == (0, "7\n"), done.stderr
    done = run(installation, "mariadb", site, "shown", "--ssl", "-Ne", "SELECT 7")
    assert "ERROR 1045 (28000): Access denied" in done.stderr


def test_mariadb_binlog_reads_over_tls(site, installation, mariadb_11):
    for method in methods_of(installation, trusting=installation is mariadb_11):
        done = run(
            installation, "mariadb-binlog", site, method, "--read-from-remote-server", "--ssl", NAME
        )
        assert done.returncode == 0, (method, done.stderr)
        assert "CREATE DATABASE shop" in done.stdout


def test_replicas_follow_over_tls_by_every_method(site, installation, mariadb_11):
    trusting = installation is mariadb_11
    replica = site.rig.replica(installation, f"--plugin-dir={client_plugins(installation)}")
    tls = "MASTER_SSL=1, MASTER_SSL_VERIFY_SERVER_CERT=1" if trusting else "MASTER_SSL=1"
    for number, method in enumerate(methods_of(installation, trusting=trusting), 10):
        site.primary.run(f"REPLACE INTO shop.t VALUES ({number})")
        position = replica.replica_position()
        replica.replicate_from(
            site.ibb.port,
            host="localhost",
            user=method,
            password=SECRET,
            position=position,
            tls=tls,
        )
        compare.wait_for_position(replica, site.primary.binlog_position())
        assert replica.replica_status()["Master_SSL_Allowed"] == "Yes"
    replica.stop()


def test_pymysql_logs_in_by_what_it_knows(site):
    for method in ("mysql_native_password", "ed25519", "caching_sha2_password"):
        link = pymysql.connect(
            host="127.0.0.1",
            port=site.ibb.port,
            user=method,
            password=SECRET,
            ssl_verify_cert=False,
            ssl={"check_hostname": False},
        )
        with link, link.cursor() as cursor:
            cursor.execute("SELECT 7")
            assert cursor.fetchone() == (7,)


def test_a_primary_of_11_8_is_believed_by_the_password(rig, mariadb_11, tmp_path):
    primary = rig.primary(mariadb_11, "--plugin-load-add=auth_parsec")
    primary.run(
        "SET sql_log_bin = 0",
        f"CREATE USER up@'%' IDENTIFIED VIA parsec USING PASSWORD('{UPSTREAM_SECRET}') REQUIRE SSL",
        "GRANT REPLICATION SLAVE, BINLOG MONITOR ON *.* TO up@'%'",
        "SET sql_log_bin = 1",
        "CREATE DATABASE shop",
    )
    secret = tmp_path / "upstream"
    secret.write_text(UPSTREAM_SECRET)
    ibb = rig.ibb(
        f"--upstream=mariadb://up@127.0.0.1:{primary.port}",
        f"--upstream-password-file={secret}",
        "--upstream-ssl=verify",
    ).start()
    replica = rig.replica(mariadb_11)
    replica.replicate_from(ibb.port)
    compare.wait_for_position(replica, primary.binlog_position())
    assert "upstream_not_verified" not in ibb.log_tail()
    for server in (replica, primary):
        server.stop()
    ibb.stop()


def logs_in(site, user):
    try:
        pymysql.connect(
            host="127.0.0.1", port=site.ibb.port, user=user, password=SECRET, ssl_disabled=True
        ).close()
    except pymysql.err.OperationalError:  # by what an unknown user is asked, that differs
        return False
    return True


def test_accounts_are_read_again_at_sighup_and_a_broken_file_changes_nothing(site):
    path = site.ibb.folder / "accounts.toml"
    assert not logs_in(site, "late")
    add_account(site.ibb, "late")
    os.kill(site.ibb.pid, signal.SIGHUP)
    wait_until(lambda: logs_in(site, "late"), SECONDS)
    good = path.read_text()
    path.write_text(good + "\n[[account]]\nuser = 5\n")
    os.kill(site.ibb.pid, signal.SIGHUP)
    wait_until(lambda: "reload_failed" in site.ibb.log.read_text(), SECONDS)
    assert logs_in(site, "late")
    path.write_text(good)


def test_a_certificate_is_renewed_at_sighup_while_sessions_go_on(rig, mariadb_10, tmp_path):
    paths = {name: tmp_path / f"{name}.pem" for name in ("first", "second", "served", "key")}

    def serve_next(name):
        certificate, key = self_signed("localhost")
        for path in (paths[name], paths["served"]):
            path.write_bytes(certificate)
        paths["key"].write_bytes(key)

    def trusts(name):
        """Tell whether the command line takes *name* for the CA of what is served."""
        verify = (f"--ssl-ca={paths[name]}", "--ssl-verify-server-cert", "-Ne", "SELECT 7")
        words = ("--host=localhost", "--protocol=tcp", f"--port={ibb.port}", "--user=keeper")
        line = mariadb_10.command("mariadb", *words, f"--password={SECRET}", *verify)
        done = subprocess.run(line, capture_output=True, text=True, timeout=SECONDS, check=False)
        assert done.stdout == "7\n" or "ERROR 2026" in done.stderr, done.stderr
        return done.returncode == 0

    serve_next("first")
    ibb = rig.ibb(f"--ssl-cert={paths['served']}", f"--ssl-key={paths['key']}")
    add_account(ibb, "keeper")
    ibb.start()
    kept = pymysql.connect(
        host="127.0.0.1", port=ibb.port, user="keeper", password=SECRET, ssl_ca=str(paths["first"])
    )
    assert trusts("first")
    serve_next("second")
    os.kill(ibb.pid, signal.SIGHUP)
    wait_until(lambda: trusts("second"), SECONDS)
    assert not trusts("first")
    paths["served"].write_text("nonsense")
    os.kill(ibb.pid, signal.SIGHUP)
    wait_until(lambda: "reload_failed" in ibb.log.read_text(), SECONDS)
    assert trusts("second")
    with kept, kept.cursor() as cursor:
        cursor.execute("SELECT 7")
        assert cursor.fetchone() == (7,)
    ibb.stop()


def test_no_secret_and_no_account_is_in_the_log_or_the_list_of_processes(site):
    """Runs last: whatever the tests above made the server say."""
    book = list(AccountBook.load(str(site.ibb.folder / "accounts.toml")))
    hashes = [text for account in book for _, text in account.auth]
    names = [account.user for account in book]
    assert len(hashes) >= len(METHODS)
    log = site.ibb.log.read_text()
    assert "client_refused" in log
    command = Path(f"/proc/{site.ibb.pid}/cmdline").read_text()
    environment = Path(f"/proc/{site.ibb.pid}/environ").read_text()
    for secret in (SECRET, UPSTREAM_SECRET, PASSWORD, *hashes):
        assert secret not in log + command + environment
    for name in names:
        assert not re.search(rf"\b{name}\b", log)
