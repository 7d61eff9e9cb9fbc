"""Secrets of the compose stack are made once, each for its service alone."""

import importlib.util
import os
import re
import shutil
from pathlib import Path

import pytest

from ibb.server.login.accounts import AccountBook, make_account

SOURCE = Path(__file__).parents[2] / "containers" / "ibb" / "make_secrets.py"
SERVICES = {
    "primary": 3306,
    "replica1": 3306,
    "replica2": 3306,
    "relay": 3307,
    "prometheus": 3308,
    "grafana": 472,
}
CERTIFICATES = ("primary-cert.pem", "relay-cert.pem")


@pytest.fixture
def make_secrets(monkeypatch):
    """The program, with the owners noted that only root could give."""
    spec = importlib.util.spec_from_file_location("make_secrets", SOURCE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.owners = {}
    monkeypatch.setattr(os, "chown", lambda path, user, _: module.owners.update({path: user}))
    monkeypatch.setattr(shutil, "chown", lambda path, user, _: module.owners.update({path: user}))
    return module


@pytest.fixture
def folders(tmp_path):
    """Those of its arguments; the services' are volumes, as an engine makes them."""
    of_services = tmp_path / "services"
    for path in (tmp_path / "secrets", *(of_services / name for name in SERVICES)):
        path.mkdir(mode=0o755, parents=True)
    (tmp_path / "store").mkdir()
    return tmp_path / "secrets", of_services, tmp_path / "store"


@pytest.fixture
def folders_before(folders):
    """The same, with what the first version of the program left in volumes that are in use."""
    old, _, store = folders
    for name in ("passwords", "mariadb", "ibb", "prometheus", "grafana"):
        (old / name).mkdir(mode=0o700)
        (old / name / "ready").touch()
    (old / "passwords" / "ready").unlink()
    for name in ("root", "relay", "replica", "admin", "grafana"):
        (old / "passwords" / name).write_text(f"{name} of before")
    for host, folder in (("primary", "mariadb"), ("relay", "ibb")):
        for kind in ("cert", "key"):
            (old / folder / f"{host}-{kind}.pem").write_text(f"{kind} of {host}")
    with AccountBook.changing(str(store / "accounts.toml")) as book:
        for user in ("replica", "admin"):
            book.add(make_account(user, "%", f"{user} of before", require="SSL"))
    return folders


def contents(*folders):
    return {path: path.read_bytes() for one in folders for path in one.rglob("*") if path.is_file()}


def users(store):
    return {account.user for account in AccountBook.load(str(store / "accounts.toml"))}


def test_each_service_has_what_it_needs_and_no_more(make_secrets, folders):
    make_secrets.main(*folders)
    found = {
        name: {path.name for path in (folders[1] / name).iterdir()} - {"ready", *CERTIFICATES}
        for name in SERVICES
    }
    assert found == {
        "primary": {"root-password", "relay-password", "primary-key.pem"},
        "relay": {"relay-password", "relay-key.pem"},
        "replica1": {"replica-password"},
        "replica2": {"replica-password"},
        "prometheus": {"metrics-password"},
        "grafana": {"grafana-password"},
    }
    assert {path.name for path in folders[0].iterdir()} == {"passwords"}


def test_nobody_but_its_user_reads_a_folder(make_secrets, folders):
    make_secrets.main(*folders)
    owned = {folders[0] / "passwords": 0}
    owned |= {folders[1] / name: user for name, user in SERVICES.items()}
    for path, user in owned.items():
        assert make_secrets.owners[path] == user
        assert path.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in contents(*folders)} == {0o600}


def test_compose_gives_each_service_its_volume_alone(make_secrets):
    text = (SOURCE.parents[2] / "docker-compose.yml").read_text()
    for service, (user, _) in make_secrets.SERVICES.items():
        assert user == SERVICES[service]
        (mount,) = re.findall(rf"\bkeys-{service}:(/run/\S+):ro\b", text)
        assert mount.startswith("/run/ibb-secrets/")
        assert f"- keys-{service}:/services/{service}\n" in text
    assert len(re.findall(r"(?<![-\w])secrets:/", text)) == 1  # with all passwords: its maker's


def test_prometheus_logs_in_as_who_may_only_look(make_secrets, folders):
    make_secrets.main(*folders)
    accounts = {each.user: each for each in AccountBook.load(str(folders[2] / "accounts.toml"))}
    assert {user: account.require for user, account in accounts.items()} == {
        "replica": "SSL",
        "admin": "SSL",
        "metrics": "SSL",
    }
    assert accounts["metrics"].grants == make_account("x", "%", "x", ["BINLOG MONITOR"]).grants
    assert "REPLICATION SLAVE" in accounts["admin"].grants  # to see what is in groups
    scraped = (SOURCE.parents[1] / "prometheus" / "prometheus.yml").read_text()
    assert "{username: metrics, password_file: /run/ibb-secrets/prometheus/metrics-p" in scraped


def test_a_second_start_changes_nothing(make_secrets, folders):
    make_secrets.main(*folders)
    before = contents(*folders)
    make_secrets.main(*folders)
    assert contents(*folders) == before


def test_a_service_that_comes_later_gets_what_is_there(make_secrets, folders):
    make_secrets.main(*folders)
    before = contents(*folders)
    shutil.rmtree(folders[1] / "prometheus")
    make_secrets.main(*folders)
    assert contents(*folders) == before


def test_a_password_that_was_chosen_is_taken(make_secrets, folders):
    (folders[0] / "passwords").mkdir()
    (folders[0] / "passwords" / "replica").write_bytes("'\"\\$(id)`; é\n".encode())
    make_secrets.main(*folders)
    copy = folders[1] / "replica1" / "replica-password"
    assert copy.read_bytes() == "'\"\\$(id)`; é\n".encode()


def test_volumes_of_before_are_taken_over(make_secrets, folders_before):
    old, services, store = folders_before
    before = contents(old)
    accounts = AccountBook.load(str(store / "accounts.toml"))
    make_secrets.main(*folders_before)
    assert contents(old).items() >= before.items()
    assert (services / "primary" / "primary-key.pem").read_text() == "key of primary"
    assert (services / "relay" / "relay-key.pem").read_text() == "key of relay"
    for name in SERVICES:
        for host in ("primary", "relay"):
            certificate = services / name / f"{host}-cert.pem"
            assert certificate.read_text() == f"cert of {host}"
    assert (services / "replica1" / "replica-password").read_text() == "replica of before"
    assert users(store) == {"replica", "admin", "metrics"}
    assert set(accounts) < set(AccountBook.load(str(store / "accounts.toml")))


def test_an_account_that_was_taken_away_stays_away(make_secrets, folders):
    make_secrets.main(*folders)
    with AccountBook.changing(str(folders[2] / "accounts.toml")) as book:
        book.remove("replica", "%")
        book.remove("metrics", "%")
    make_secrets.main(*folders)
    assert users(folders[2]) == {"admin"}


def test_an_account_that_somebody_else_made_is_his(make_secrets, folders_before):
    path = str(folders_before[2] / "accounts.toml")
    with AccountBook.changing(path) as book:
        book.add(make_account("metrics", "10.0.7.%", "mine"))
    before = set(AccountBook.load(path))
    make_secrets.main(*folders_before)
    assert set(AccountBook.load(path)) == before
