"""
A store over damaged files: it opens or says why not, and what was there is there afterwards.

The damages are those of `verify/test_damage.py`, to files that another program wrote, and more of
them to a store's own files and redo log, closed or killed.
"""

import pytest

from ibb.protocol.errors import FormatError, IbbError
from ibb.protocol.gtid import Gtid
from ibb.storage import Store
from ibb.storage.file_name import binlog_name
from ibb.storage.inspect.files import Inspector
from ibb.storage.inspect.group_range import groups_between
from ibb.storage.inspect.record import inspect_record
from ibb.storage.inspect.recovered_view import recovered_view
from ibb.storage.inspect.redo import inspect_groups, inspect_segments
from ibb.storage.os_disk import OsDisk
from ibb.storage.position import Position
from ibb.storage.read_only import ReadOnlyHistory
from ibb.storage.redo_segment import SEGMENT_NAMES
from ibb.storage.verify import verify_directory

from .verify.binlog_to_damage import FILE2, GROUPS_IN
from .verify.page_damages import chunk_past_the_last_page
from .verify.test_damage import DAMAGES, binlog
from .verify.verify_rig import SIZE, SMALL, groups_of, publish

__all__ = ["binlog"]  # the fixture

LOCK = "ibb.lock"
FILES = ("binlog-", "ibb-redo-", "ibb-reset", "formats.json")


def contents_of(path):
    return {file.name: file.read_bytes() for file in path.iterdir() if file.name != LOCK}


def assert_nothing_is_lost(before, after):
    """
    Each file is as it was, but for bytes that were zero and for zeros behind; or a copy of it is.

    That is what going on at the end of a file does to it, and nothing else.
    """
    for name, data in before.items():
        if not name.endswith(".ibb") or not data.strip(b"\0"):
            continue
        copies = [copy for other, copy in after.items() if other.startswith(f"{name}.aside-")]
        now = after.get(name)
        kept = now is not None and all(
            old in (new, 0) for old, new in zip(data, now.ljust(len(data), b"\0"), strict=False)
        )
        assert kept or data in copies or only_its_end_went_on(data, now), name


def only_its_end_went_on(data, now):
    """Tell whether the only difference is one page, which goes on where it ended."""
    if now is None:
        return False
    differing = {
        at // SIZE
        for at, (old, new) in enumerate(zip(data, now.ljust(len(data), b"\0"), strict=False))
        if old not in (new, 0)
    }
    if len(differing) != 1:
        return False
    (page,) = differing
    old, new = (image[page * SIZE : (page + 1) * SIZE - 4] for image in (data, now))
    return new.startswith(old.rstrip(b"\0"))


def look_at_everything(disk, directory):
    """Do all that only looks; each look may end with an error that names a place."""
    files = [name for name in disk.list(directory) if name.startswith("binlog-")]
    looks = [
        lambda: list(verify_directory(disk, directory)),
        lambda: [list(inspect_segments(disk, directory)), list(inspect_groups(disk, directory))],
        lambda: read_all(disk, directory),
        *(lambda name=name: inspect_file(disk, directory, name) for name in files),
    ]
    for look in looks:
        try:
            look()
        except IbbError as error:
            check_place(error)


def check_place(error):
    """Check that an error names a file."""
    assert any(name in str(error) for name in FILES), error


def inspect_file(disk, directory, name):
    inspector = Inspector(disk, directory)
    try:
        file_no = int(name[7:].split(".")[0])
        list(inspector.files())
        for page in inspector.file_pages(file_no):
            list(inspector.chunks(file_no, page.page))
            inspect_record(inspector.pages, Position(file_no, page.page * SIZE))
    finally:
        inspector.close()


def read_all(disk, directory):
    history = ReadOnlyHistory(recovered_view(disk, directory), directory, follow_unsynced=True)
    try:
        for group in groups_between(history):
            b"".join(group.pieces())
    finally:
        history.close()


def gtids_behind(store, position):
    return [str(group.gtid) for group in store.reader(position) if group.gtid is not None]


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_files_of_another_program(binlog, damage):
    damage(binlog)
    before = contents_of(binlog.path)
    look_at_everything(OsDisk(), str(binlog.path))
    assert contents_of(binlog.path) == before
    try:
        store = Store.open(binlog.path, SMALL)
    except FormatError as error:
        check_place(error)
        assert contents_of(binlog.path).items() >= before.items()
        return
    with store:
        before_it = store.state().position()
        publish(store, 900)
        newest = store.state().newest(0)
        assert newest == Gtid(0, 1, 900)
        assert gtids_behind(store, before_it) == ["0-1-900"]
    assert_nothing_is_lost(before, contents_of(binlog.path))


def end_of_another_program(binlog):
    """Damage the last page as another program left it."""
    chunk_past_the_last_page(binlog)
    return FILE2, 6


def end_of_a_store(binlog):
    """Damage the last page of a store that was closed."""
    with Store.open(binlog.path, SMALL) as store:
        for number in range(900, 905):
            publish(store, number, 200)
        end = store.end()
    page = end.offset // SIZE
    assert page > 1
    binlog.sealed(Position(end.file_no, page * SIZE + 1), b"\xff\xff")
    return binlog_name(end.file_no), page


def end_of_a_store_without_its_log(binlog):
    place = end_of_a_store(binlog)
    for name in SEGMENT_NAMES:
        (binlog.path / name).unlink()
    return place


@pytest.mark.parametrize(
    "damage", [end_of_another_program, end_of_a_store, end_of_a_store_without_its_log]
)
def test_an_impossible_chunk_length_in_the_last_page_refuses_the_opening(binlog, damage):
    """Nobody knows where that page ends: to go on there would be to write over something."""
    file, page = damage(binlog)
    before = contents_of(binlog.path)
    with pytest.raises(FormatError) as caught:
        Store.open(binlog.path, SMALL)
    text = "Invalid record of type 0xc1 (invalid chunk length 65535): the store cannot be opened"
    assert caught.value.what.startswith(text)
    assert (caught.value.file, caught.value.page) == (file, page)
    after = contents_of(binlog.path)
    assert after.items() >= before.items()
    assert after.keys() - before.keys() <= set(SEGMENT_NAMES)  # made before the files are read
    assert groups_of(binlog.path, 0) == list(GROUPS_IN[0])
    assert groups_of(binlog.path, 1) == list(GROUPS_IN[1])
