"""`ibb verify`: exit status, lines, objects."""

import json
import subprocess
import sys

import pytest

from ..sample_directories import unpack


@pytest.fixture
def directory(tmp_path):
    unpack("plain-16k-1", tmp_path)
    return tmp_path


def verify(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "ibb", "verify", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def damage(directory):
    file = directory / "binlog-000003.ibb"
    image = bytearray(file.read_bytes())
    image[5 * 16384 + 77] ^= 1
    file.write_bytes(image)


def test_a_sound_directory(directory):
    done = verify(directory)
    assert done.returncode == 0
    assert done.stderr == ""
    assert done.stdout.count("\n") == 1
    assert "400 groups" in done.stdout
    assert done.stdout.endswith("nothing found\n")
    done = verify(directory, "--json")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_summary_fits_on_a_line_whatever_the_number_of_domains(tmp_path):
    unpack("wide-state-1", tmp_path)
    (summary,) = verify(tmp_path).stdout.splitlines()
    assert "... 292 domains more'" in summary
    assert len(summary) < 250


def test_a_damaged_directory(directory):
    damage(directory)
    done = verify(directory)
    assert done.returncode == 1
    first, summary = done.stdout.splitlines()
    assert first.startswith("damage   page-checksum        binlog-000003.ibb page 5: Page corr")
    assert "[lost: " in first
    assert summary.endswith(": 1 found")
    done = verify(directory, "--json")
    assert done.returncode == 1
    (found,) = map(json.loads, done.stdout.splitlines())
    assert found.pop("text").startswith("Page corruption in binlog tablespace file page number 5")
    assert found.pop("lost")
    assert found == {
        "kind": "page-checksum",
        "severity": "damage",
        "file": "binlog-000003.ibb",
        "page": 5,
        "offset": None,
    }


def test_notes_alone_are_no_reason_to_fail(directory):
    (directory / "binlog-000003.ibb.aside-0").write_bytes(b"")
    done = verify(directory)
    assert done.returncode == 0
    assert done.stdout.startswith("note     set-aside")


def test_what_cannot_be_checked(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    for path, reason in (
        (tmp_path / "nowhere", "does not exist"),
        (tmp_path / "file", "is a file"),
        (tmp_path, f"no binlog is in {tmp_path}"),
    ):
        done = verify(path)
        assert (done.returncode, done.stdout) == (2, "")
        assert reason in done.stderr
