"""Secrets of the compose stack are made once, each for its server alone."""

import importlib.util
import os
import shutil
from pathlib import Path

import pytest

from ibb.server.login.accounts import AccountBook

SOURCE = Path(__file__).parents[2] / "containers" / "ibb" / "make_secrets.py"


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
    for name in ("secrets", "store"):
        (tmp_path / name).mkdir()
    return tmp_path / "secrets", tmp_path / "store"


def contents(*folders):
    return {path: path.read_bytes() for one in folders for path in one.rglob("*") if path.is_file()}


def test_each_folder_is_its_servers_alone(make_secrets, folders):
    make_secrets.main(*folders)
    users = {"mariadb": 3306, "ibb": 3307, "prometheus": 3308, "grafana": 472, "passwords": 0}
    assert {path.name for path in folders[0].iterdir()} == users.keys()
    for name, user in users.items():
        assert make_secrets.owners[folders[0] / name] == user
        assert (folders[0] / name).stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in contents(*folders)} == {0o600}
    keys = [path.parent.name for path in contents(folders[0]) if path.name.endswith("-key.pem")]
    assert sorted(keys) == ["ibb", "mariadb"]


def test_a_second_start_changes_nothing(make_secrets, folders):
    make_secrets.main(*folders)
    before = contents(*folders)
    make_secrets.main(*folders)
    assert contents(*folders) == before


def test_a_server_that_comes_later_gets_what_is_there(make_secrets, folders):
    make_secrets.main(*folders)
    before = contents(*folders)
    shutil.rmtree(folders[0] / "prometheus")
    make_secrets.main(*folders)
    assert contents(*folders) == before


def test_a_password_that_was_chosen_is_taken(make_secrets, folders):
    (folders[0] / "passwords").mkdir()
    (folders[0] / "passwords" / "replica").write_bytes("'\"\\$(id)`; é\n".encode())
    make_secrets.main(*folders)
    copy = folders[0] / "mariadb" / "replica-password"
    assert copy.read_bytes() == "'\"\\$(id)`; é\n".encode()
    users = {
        account.user: account.require
        for account in AccountBook.load(str(folders[1] / "accounts.toml"))
    }
    assert users == {"replica": "SSL", "admin": "SSL"}
