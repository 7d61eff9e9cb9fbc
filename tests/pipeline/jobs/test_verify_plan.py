"""A directory checked in parts: the findings of one check of all of it, whatever is damaged."""

import pickle
import shutil

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ibb.pipeline.jobs import verify_part, verify_plan
from ibb.pipeline.jobs.verify_part import TooManyFindings, check_part
from ibb.pipeline.jobs.verify_plan import verify_in_parts
from ibb.protocol.binlog_state import BinlogState
from ibb.protocol.gtid import Gtid
from ibb.storage import Store
from ibb.storage.file_name import binlog_name
from ibb.storage.os_disk import OsDisk
from ibb.storage.position import Position
from ibb.storage.record import (
    OobReference,
    RecordType,
    XaPrepare,
    Xid,
    encode_state,
    encode_xa_prepare,
)
from ibb.storage.verify import Totals, verify_directory
from ibb.storage.verify.files_now import FilesNow

from ...faults.sim_disk import SimDisk
from ...sample_directories import NAMES, unpack
from ...storage import binlog_builder
from ...storage.binlog_builder import event
from ...storage.verify.test_random import DAMAGES, seal_all
from ...storage.verify.verify_rig import SIZE, SMALL, Binlog, publish


class Parts:
    """Checks parts one after the other, as they travel, and counts them."""

    def __init__(self, disk):
        self.disk = disk
        self.calls = []

    def __call__(self, parts):
        self.calls.append(len(parts))
        travelled = pickle.loads(pickle.dumps(parts))
        return pickle.loads(pickle.dumps([check_part(self.disk, part) for part in travelled]))


def compared(disk, path, part_bytes=1):
    """Check a directory in both ways; return the findings and how it was done in parts."""
    whole, together, parts = Totals(), Totals(), Parts(disk)
    expected = list(verify_directory(disk, path, totals=whole))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(verify_plan, "PART_BYTES_MIN", part_bytes)
        found = list(verify_in_parts(disk, path, parts, readers=1000, totals=together))
    assert found == expected
    assert together == whole
    return found, parts


@pytest.fixture
def narrow(monkeypatch):
    """Let parts look only two pages ahead: files here have a few."""
    monkeypatch.setattr(verify_part, "AHEAD_BYTES", 1)
    monkeypatch.setattr(verify_part, "AHEAD_PAGES_MIN", 2)


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    """Return the files of a binlog of which groups cross borders, by path."""
    path = tmp_path_factory.mktemp("images")
    binlog = Binlog(path).groups(15).large_group().groups(25).large_group((600, 500, 3))
    binlog.groups(60, size=700).write()
    return {f"/s/{file.name}": file.read_bytes() for file in sorted(path.iterdir())}


def disk_of(images):
    disk = SimDisk()
    for path, image in images.items():
        disk.open(path, create=True).write_at(0, image)
    return disk


def test_what_is_sound_is_checked_in_parts_and_once(narrow, images):
    found, parts = compared(disk_of(images), "/s")
    assert found == []
    assert parts.calls[0] > 5
    assert len(parts.calls) == 1
    _, few = compared(disk_of(images), "/s", part_bytes=SIZE * 8 * 4)
    assert 1 < few.calls[0] < parts.calls[0]
    _, one = compared(disk_of(images), "/s", part_bytes=1 << 40)
    assert one.calls == [1]  # beside the newest file


@given(damages=st.lists(DAMAGES, min_size=1, max_size=4), seal=st.booleans())
@settings(max_examples=60, deadline=None)
def test_damage_is_told_as_by_one_check(images, damages, seal):
    damaged = {path: bytearray(image) for path, image in images.items()}
    for damage, file, place in damages:
        image = damaged[sorted(damaged)[file % len(damaged)]]
        if len(image) >= SIZE:
            damage(image, place)
    if seal:
        for image in damaged.values():
            seal_all(image)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(verify_part, "AHEAD_BYTES", 1)
        patch.setattr(verify_part, "AHEAD_PAGES_MIN", 2)
        compared(disk_of(damaged), "/s")


@given(gone=st.sets(st.integers(0, 40), max_size=3))
@settings(max_examples=20, deadline=None)
def test_missing_files_are_told_as_by_one_check(images, gone):
    names = sorted(images)
    missing = {names[number % len(names)] for number in gone}
    compared(disk_of({path: images[path] for path in names if path not in missing}), "/s")


def test_damage_at_a_border_has_both_parts_checked_again(narrow, images):
    path = sorted(images)[4]
    image = bytearray(images[path])
    image[SIZE + 100] ^= 1  # page 1, whose state the next part would begin with
    found, parts = compared(disk_of(images | {path: image}), "/s")
    assert {str(finding.kind) for finding in found} == {"page-checksum"}
    assert len(parts.calls) == 1  # that page was no place for a border
    path = sorted(images)[5]
    image = bytearray(images[path])
    image[SIZE * 7 + 100] ^= 1  # the last page: what it has cost only the next part tells
    found, parts = compared(disk_of(images | {path: image}), "/s")
    assert found[0].lost.startswith("0-1-")
    assert len(parts.calls) <= 2


@pytest.mark.parametrize("name", NAMES)
def test_samples(narrow, tmp_path, name):
    unpack(name, tmp_path)
    compared(OsDisk(), str(tmp_path))


def test_a_store_in_use_and_one_that_was_killed(narrow, tmp_path):
    with Store.open(tmp_path, SMALL) as store:
        for number in range(1, 200):
            publish(store, number, 300)
        found, parts = compared(OsDisk(), str(tmp_path))
        assert {str(finding.kind) for finding in found} <= {"not-closed"}
        assert parts.calls[0] > 3
    compared(OsDisk(), str(tmp_path))
    (tmp_path / "binlog-000003.ibb.aside-0").write_bytes(b"")
    newest = sorted(tmp_path.glob("binlog-*.ibb"))[-3]
    newest.write_bytes(bytes(newest.stat().st_size))  # what the redo log has, or not
    found, _ = compared(OsDisk(), str(tmp_path))
    assert found[0].kind == "set-aside"


def kinds(found):
    return {str(finding.kind) for finding in found}


def test_a_state_at_a_border_that_knows_more_is_not_believed(narrow, tmp_path):
    binlog = Binlog(tmp_path).groups(60)
    binlog.builder.full.update(Gtid(0, 2, 500))
    binlog.groups(60).write()
    found, parts = compared(OsDisk(), str(tmp_path))
    assert "groups-missing" in kinds(found)
    assert parts.calls == [parts.calls[0], 1]


@pytest.mark.parametrize("logged", [True, False])
def test_a_domain_that_is_gone_is_judged_by_the_whole_history(narrow, tmp_path, logged):
    binlog = Binlog(tmp_path, first=3)
    binlog.builder.full.update(Gtid(8, 1, 5))
    if logged:
        binlog.groups(2)
        binlog.builder.commit(Gtid(8, 1, 6), event(200))
    binlog.groups(60)
    kept = [gtid for gtid in binlog.builder.full.entries() if gtid.domain != 8]
    binlog.builder.full = BinlogState(kept)
    binlog.groups(60).write()
    found, parts = compared(OsDisk(), str(tmp_path))
    assert kinds(found) == {"state-differs" if logged else "domain-deleted"}
    assert parts.calls[0] > 5


def test_what_is_prepared_is_followed_across_files(narrow, tmp_path, monkeypatch):
    def with_reference(entries, _xa_file, major):
        return encode_state(entries, reference, major)

    monkeypatch.setattr(binlog_builder, "encode_state", with_reference)
    reference = None
    binlog = Binlog(tmp_path).groups(30)
    nothing = OobReference(0, Position(0, 0), Position(0, 0))
    prepare = XaPrepare(1, Xid(1, b"a", b""), nothing)
    reference = binlog.builder.file_no
    binlog.builder.record(RecordType.XA_PREPARE, encode_xa_prepare(prepare))
    binlog.groups(60)
    reference = None
    binlog.groups(60).write()
    found, _ = compared(OsDisk(), str(tmp_path))
    assert "xa-reference" in kinds(found)


def test_pages_that_only_the_redo_log_has_are_read_from_there(narrow, tmp_path):
    with Store.open(tmp_path / "used", SMALL) as store:
        for number in range(1, 200):
            publish(store, number, 300)
        shutil.copytree(tmp_path / "used", tmp_path / "left")
    older = sorted((tmp_path / "left").glob("binlog-*.ibb"))[-3]
    image = bytearray(older.read_bytes())
    image[SIZE * 5 : SIZE * 6] = bytes(SIZE)
    older.write_bytes(image)
    found, _ = compared(OsDisk(), str(tmp_path / "left"))
    assert kinds(found) == {"not-closed"}


def test_many_notes_are_counted_over_all_parts(narrow, tmp_path):
    binlog = Binlog(tmp_path)
    for number in range(1, 90):
        seq = number if number % 2 else 1000 + number
        binlog.builder.commit(Gtid(0, number % 2 + 1, seq), event(200))
    binlog.write()
    found, parts = compared(OsDisk(), str(tmp_path))
    assert found[-1].kind == "more"
    assert parts.calls[0] > 3


def test_a_part_with_too_many_findings_says_what_to_do(narrow, images, monkeypatch):
    monkeypatch.setattr(verify_part, "FINDINGS_MAX", 3)
    damaged = {path: bytearray(image) for path, image in images.items()}
    for image in damaged.values():
        image[SIZE * 3 + 100] ^= 1
        image[SIZE * 4 + 100] ^= 1
    disk = disk_of(damaged)
    with pytest.raises(TooManyFindings, match="without --master"):
        list(verify_in_parts(disk, "/s", Parts(disk)))


class LateParts(Parts):
    """Checks parts when something has happened to their files, before they were begun."""

    def __init__(self, act):
        super().__init__(OsDisk())
        self.act = act

    def __call__(self, parts):
        if not self.calls:
            self.act()
        return super().__call__(parts)


def checked_late(path, store, act):
    """Return what a check finds of a store whose files change before their parts are checked."""
    for number in range(1, 200):
        publish(store, number, 300)
    parts = LateParts(act)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(verify_plan, "PART_BYTES_MIN", 1)
        found = list(verify_in_parts(OsDisk(), str(path), parts, readers=1000))
    assert parts.calls[0] > 3
    return kinds(found) - {"not-closed"}


def test_files_that_were_begun_anew_before_their_parts_were_checked_are_told_of(narrow, tmp_path):
    with Store.open(tmp_path, SMALL) as store:

        def begin_anew():
            store.reset()
            for number in range(1, 400):
                publish(store, number, 300)

        assert checked_late(tmp_path, store, begin_anew) == {"begun-anew"}


@pytest.mark.parametrize("first", [1, 2, 3, 6])
def test_files_that_were_purged_before_their_parts_were_checked_are_no_finding(
    narrow, tmp_path, first
):
    with Store.open(tmp_path, SMALL) as store:
        assert checked_late(tmp_path, store, lambda: store.purge_to(binlog_name(first))) == set()


def test_files_that_are_begun_anew_meanwhile_are_no_damage(narrow, images, monkeypatch):
    path = sorted(images)[4]
    image = bytearray(images[path])
    image[SIZE * 5 + 100] ^= 1
    disk = disk_of(images | {path: image})
    monkeypatch.setattr(FilesNow, "are_begun_anew", lambda _files: True)
    monkeypatch.setattr(verify_plan, "PART_BYTES_MIN", 1)
    found = list(verify_in_parts(disk, "/s", Parts(disk), readers=1000))
    assert found == list(verify_directory(disk, "/s"))
    assert kinds(found) == {"begun-anew"}
