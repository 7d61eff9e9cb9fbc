"""A file that is replaced keeps its owner, mode and links, and is on the disk before it counts."""

import fcntl
import os
import stat

import pytest

from ibb.server.config import ConfigError
from ibb.server.login.replaced_file import locked_folder, replace_file


@pytest.fixture
def calls(monkeypatch):
    """Record what is done to files, in order."""
    noted = []

    def fsync(descriptor):
        noted.append("folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file")

    replace = os.replace
    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(os, "replace", lambda *names: noted.append("replace") or replace(*names))
    monkeypatch.setattr(os, "fchown", lambda _, *owner: noted.append(owner))
    return noted


@pytest.fixture
def path(tmp_path):
    return tmp_path / "some.toml"


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o444])
def test_owner_and_mode_stay(path, calls, mode):
    path.write_text("old")
    path.chmod(mode)
    owner = (path.stat().st_uid, path.stat().st_gid)
    replace_file(str(path), "new")
    assert path.read_text() == "new"
    assert stat.S_IMODE(path.stat().st_mode) == mode
    assert calls == [owner, "file", "replace", "folder"]


def test_a_new_file_is_its_owners_alone(path, calls, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    replace_file(str(path), "new")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert calls == ["file", "replace", "folder"]


def test_root_makes_it_for_the_owner_of_the_folder(path, calls, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    replace_file(str(path), "new")
    assert calls[0] == (path.parent.stat().st_uid, path.parent.stat().st_gid)


def test_an_owner_that_cannot_be_kept_is_an_error(path, monkeypatch):
    path.write_text("old")

    def fchown(*_):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "fchown", fchown)
    with pytest.raises(ConfigError, match=r"cannot keep the owner of .*some\.toml"):
        replace_file(str(path), "new")
    assert path.read_text() == "old"
    assert [entry.name for entry in path.parent.iterdir()] == ["some.toml"]


def test_links_stay_and_lead_to_the_new_text(path, tmp_path):
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    target = folder / "real.toml"
    path.symlink_to("elsewhere/middle.toml")
    (folder / "middle.toml").symlink_to("real.toml")
    for text in ("new", "newer"):  # there is no file at first
        replace_file(str(path), text)
        assert path.is_symlink()
        assert not target.is_symlink()
        assert target.read_text() == path.read_text() == text
    assert sorted(entry.name for entry in folder.iterdir()) == ["middle.toml", "real.toml"]


def test_a_folder_that_cannot_be_locked_is_named(path, monkeypatch):
    def flock(*_):
        raise OSError(37, "No locks available")

    monkeypatch.setattr(fcntl, "flock", flock)
    refused = pytest.raises(ConfigError, match=r"cannot lock .*: No locks available")
    with refused, locked_folder(str(path)):
        path.write_text("new")
    assert not path.exists()


def test_only_one_changes_a_file_at_a_time(path, tmp_path):
    link = tmp_path / "folder" / "link.toml"
    link.parent.mkdir()
    link.symlink_to(path)
    for name in (path, link):
        folder = os.open(tmp_path, os.O_RDONLY)
        with locked_folder(str(name)), pytest.raises(BlockingIOError):
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.close(folder)
