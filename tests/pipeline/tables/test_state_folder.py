"""Documents and folders that outlive a loss of power, not only a crash of the process."""

import os
from pathlib import Path

import pytest

from ibb.pipeline.tables.state_folder import StateFolder


@pytest.fixture
def done(monkeypatch):
    """Return what was synced and renamed, by inode, in this order."""
    made = []
    for name in ("replace", "rename"):
        call = getattr(os, name)

        def noted(source, target, call=call):
            call(source, target)
            made.append(("named", Path(target).stat().st_ino))

        monkeypatch.setattr(os, name, noted)
    monkeypatch.setattr(os, "fsync", lambda file: made.append(("synced", os.fstat(file).st_ino)))
    return made


def test_a_document_is_synced_and_then_its_name(tmp_path, done):
    folder = StateFolder(str(tmp_path / "own"))
    folder.write("ledger.json", {"a": 1})
    document, own = ((tmp_path / name).stat().st_ino for name in ("own/ledger.json", "own"))
    assert done == [("synced", document), ("named", document), ("synced", own)]
    assert folder.read("ledger.json") == {"a": 1}


def test_a_folder_that_moves_is_synced_where_it_goes_and_where_it_was(tmp_path, done):
    folder = StateFolder(str(tmp_path / "own"))
    source, target = tmp_path / "shop/t", tmp_path / "dropped/shop/t"
    source.mkdir(parents=True)
    assert folder.move(str(source), str(target))
    inodes = [path.stat().st_ino for path in (target, target.parent, source.parent)]
    assert done == list(zip(("named", "synced", "synced"), inodes, strict=True))
