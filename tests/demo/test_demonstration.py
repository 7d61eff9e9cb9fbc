"""The demonstration tells equal from different, with MariaDB and without."""

import pytest

from ibb.demo import built_in, with_mariadb
from ibb.demo.demonstration import run_demonstration

GROUPS = 300


def last_line(capsys):
    return capsys.readouterr().out.splitlines()[-1]


def test_the_built_in_one_ends_equal(capsys):
    assert run_demonstration(GROUPS, built_in=True)
    assert last_line(capsys) == "equal"


def test_the_built_in_one_notices_one_changed_group(capsys, monkeypatch):
    true_groups = built_in.DumpClient.groups

    def groups(self, start, **options):
        for number, group in enumerate(true_groups(self, start, **options)):
            yield group._replace(sha256="0" * 64) if number == 7 else group

    monkeypatch.setattr(built_in.DumpClient, "groups", groups)
    assert not run_demonstration(GROUPS, built_in=True)
    assert last_line(capsys) == "different"


@pytest.mark.live
@pytest.mark.xdist_group("demo")
def test_the_one_with_mariadb_ends_equal(capsys):
    assert run_demonstration(GROUPS, built_in=False)
    out = capsys.readouterr().out
    assert f"primary {GROUPS}   ibb {GROUPS}   replica {GROUPS}" in out
    assert out.splitlines()[-1] == "equal"


@pytest.mark.live
@pytest.mark.xdist_group("demo")
def test_the_one_with_mariadb_notices_one_changed_row(capsys, monkeypatch):
    true_checksums = with_mariadb.Topology.checksums

    def checksums(self, server):
        if server is self.replica:
            server.sql("UPDATE demo.account0 SET balance = balance + 1 WHERE id = 0;")
        return true_checksums(self, server)

    monkeypatch.setattr(with_mariadb.Topology, "checksums", checksums)
    assert not run_demonstration(GROUPS, built_in=False)
    assert last_line(capsys) == "different"
