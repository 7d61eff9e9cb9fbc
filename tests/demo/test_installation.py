"""Programs of another Debian release are started by that release's own loader."""

import pytest

from ibb.demo.installation import Installation

LOADER = "ld-linux-x86-64.so.2"


def test_the_loader_is_the_one_that_lies_in_the_root(tmp_path):
    """Debian 12 has a link besides, from the top: there it would lead to this machine's own."""
    libraries = tmp_path / "usr" / "lib" / "x86_64-linux-gnu"
    linked = tmp_path / "usr" / "lib64"
    for folder in (libraries, linked):
        folder.mkdir(parents=True)
    (libraries / LOADER).touch()
    (linked / LOADER).symlink_to(f"/lib/x86_64-linux-gnu/{LOADER}")
    (tmp_path / "usr" / "sbin").mkdir()
    (tmp_path / "usr" / "sbin" / "mariadbd").touch()
    command = Installation.inside(tmp_path).command("mariadbd", "--version")
    program = str(tmp_path / "usr" / "sbin" / "mariadbd")
    assert command == [
        *(str(libraries / LOADER), "--library-path", str(libraries), program),
        "--version",
    ]


def test_an_empty_root_is_told_with_what_to_do(tmp_path):
    with pytest.raises(FileNotFoundError, match="run scripts/setup"):
        Installation.inside(tmp_path)
