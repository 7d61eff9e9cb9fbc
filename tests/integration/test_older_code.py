"""An upgrade with the directory kept, and the way back: each version goes on in it."""

import pytest

from ibb.demo.scratch_server import free_port
from ibb.protocol.checksum import crc32c
from ibb.protocol.gtid import Gtid
from ibb.storage.os_disk import OsDisk
from ibb.storage.redo_segment import FORMAT_VERSION, SEGMENT_NAMES
from ibb.storage.verify.directory_check import verify_directory

from ..storage.events import transaction
from .compare import assert_equal
from .mariadb_server import PASSWORD, USER
from .older_code import ROOT, Code, VersionedServer, contents, older_code

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("upgrade")]
# Of a day when the relay was new, and of the next one: the format of the redo log is the present
# one, but its header does not tell yet how long the file is.
SAME_FORMAT = ("3c8487e", "a685d4a")
HEADER_SIZE = 52  # of a redo segment, with the checksum behind it


@pytest.fixture(scope="module")
def new():
    return Code(ROOT)


@pytest.fixture(scope="module")
def older(tmp_path_factory):
    """Return a function that returns a commit's code."""
    found = {}

    def code(commit):
        if commit not in found:
            folder = tmp_path_factory.mktemp("older")
            found[commit] = older_code(commit, folder)
        if found[commit] is None:
            pytest.skip(f"the history of this repository does not reach back to {commit}")
        return found[commit]

    return code


def groups(first, last):
    """Return groups of two domains, now and then one of several pieces."""
    return [
        (Gtid(n % 2, 7, n), transaction(f"insert {n}", 150_000 if n % 10 == 0 else 900))
        for n in range(first, last + 1)
    ]


@pytest.mark.parametrize("end", ["closed", "killed"])
@pytest.mark.parametrize("commit", SAME_FORMAT)
def test_each_version_reads_the_others_directory_and_goes_on_in_it(
    older, new, tmp_path, commit, end
):
    old, directory, known = older(commit), tmp_path / "store", []
    for first, (writer, reader) in enumerate([(old, new), (new, old), (old, new), (new, new)]):
        more = groups(40 * first + 1, 40 * first + 40)
        assert writer.publish(directory, more, end) == ""
        found = reader.groups(directory)
        assert found[: len(known)] == known
        assert [gtid for gtid, *_ in found[len(known) :]] == [str(gtid) for gtid, _ in more]
        assert found == writer.groups(directory)
        known = found
    wrong = [one for one in verify_directory(OsDisk(), str(directory)) if one.kind != "not-closed"]
    assert wrong == []


def of_format(directory, version):
    """Have both segments of the redo log say that they are of another format."""
    for name in SEGMENT_NAMES:
        path = directory / name
        head = bytearray(path.read_bytes()[:HEADER_SIZE])
        if any(head):
            head[8:12] = version.to_bytes(4, "little")
            head[-4:] = crc32c(bytes(head[:-4])).to_bytes(4, "little")
            with path.open("r+b") as file:
                file.write(head)


@pytest.mark.parametrize("version", [FORMAT_VERSION - 1, FORMAT_VERSION + 1])
@pytest.mark.parametrize("end", ["closed", "killed"])
def test_another_format_is_refused_by_every_version_and_nothing_is_changed(
    older, new, tmp_path, end, version
):
    directory = tmp_path / "store"
    assert new.publish(directory, groups(1, 40), end) == ""
    of_format(directory, version)
    before = contents(directory)
    for code in (new, *map(older, SAME_FORMAT)):
        said = code.publish(directory, groups(41, 41), "closed")
        assert f"redo log format {version} is unknown" in said
        assert "open the directory with the version that wrote it" in said
        assert contents(directory) == before


@pytest.mark.live
def test_a_relay_goes_from_version_to_version_and_its_replica_notices_nothing(
    rig, mariadb_10, older, new
):
    old = older(SAME_FORMAT[-1])
    primary, replica, folder = (
        rig.primary(mariadb_10),
        rig.replica(mariadb_10),
        rig.new_folder("up"),
    )
    relay = VersionedServer(
        old, folder / "store", folder, user=USER, password=PASSWORD, port=free_port(),
        arguments=("--server-id=200", "--max-binlog-size=1M"),
    ).relay_from(primary.port)  # fmt: skip
    relay.start()
    try:
        replica.replicate_from(relay.port)
        primary.run("CREATE DATABASE shop", "CREATE TABLE shop.t (id INT PRIMARY KEY, d LONGBLOB)")
        for number, code in enumerate((new, old, new)):
            primary.run(f"INSERT INTO shop.t VALUES ({number}, REPEAT('x', 700000))")
            assert_equal(primary, replica)
            assert relay.stop() == 0
            primary.run(f"INSERT INTO shop.t VALUES ({100 + number}, 'while it is away')")
            relay.code = code
            relay.start()
            assert_equal(primary, replica)
        again = rig.replica(mariadb_10)  # all history, of whatever version
        again.replicate_from(relay.port)
        assert_equal(primary, again)
    finally:
        relay.kill()
