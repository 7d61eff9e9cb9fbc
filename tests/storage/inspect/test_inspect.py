"""Looking at damaged files: everything is shown, nothing raises what is not said."""

from contextlib import ExitStack

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ibb.protocol import compint
from ibb.protocol.errors import FormatError
from ibb.storage.errors import DiskError
from ibb.storage.inspect.files import Inspector
from ibb.storage.inspect.record import inspect_record
from ibb.storage.inspect.tree import NODES_DRAWN_MAX, draw_tree
from ibb.storage.oob_forest import OobForest
from ibb.storage.os_disk import OsDisk
from ibb.storage.position import Position
from ibb.storage.record import OobReference

from ...faults.sim_disk import SimDisk
from ..binlog_builder import event
from ..verify.test_random import DAMAGES, images, seal_all
from ..verify.verify_rig import SIZE, Binlog, numbered

__all__ = ["images"]  # a fixture


@pytest.fixture
def inspect():
    """Return a function that returns an inspector of a directory, closed with the test."""
    with ExitStack() as stack:

        def opened(path, disk=None):
            inspector = Inspector(disk or OsDisk(), str(path))
            stack.callback(inspector.close)
            return inspector

        yield opened


@given(damages=st.lists(DAMAGES, min_size=1, max_size=6), seal=st.booleans())
@settings(max_examples=60)
def test_no_damage_stops_it(images, damages, seal):
    damaged = {path: bytearray(image) for path, image in images.items()}
    for damage, file, place in damages:
        image = damaged[sorted(damaged)[file % len(damaged)]]
        if len(image) >= SIZE:
            damage(image, place)
    if seal:
        for image in damaged.values():
            seal_all(image)
    disk = SimDisk()
    for path, image in damaged.items():
        disk.open(path, create=True).write_at(0, image)
    assert look_at_everything(disk, "/s") == len(damaged)


def look_at_everything(disk, path):
    """Go through all that there is to be seen; return how many files that is."""
    inspector = Inspector(disk, path)
    lines = list(inspector.files())
    for file_no, line in enumerate(lines):
        if line.page_size is None:
            with pytest.raises((FormatError, DiskError)):
                list(inspector.file_pages(file_no))
            continue
        for page in inspector.file_pages(file_no):
            assert inspector.page_status(file_no, page.page) == page.status
            for chunk in inspector.chunks(file_no, page.page):
                place = Position(file_no, page.offset + chunk.offset)
                inspect_record(inspector.pages, place)
    return len(lines)


@pytest.mark.parametrize("name", ["xa-small-1", "draft-4k-v0-1", "no-room-1", "flush-edges-1"])
def test_samples_hold_nothing_that_is_unknown(sample, name, inspect):
    path, expected = sample(name)
    inspector = inspect(path)
    groups = 0
    for file_no in range(*expected["files"]):
        for page in inspector.file_pages(file_no):
            assert page.status in ("ok", "unused")
            for chunk in inspector.chunks(file_no, page.page):
                assert "damaged" not in (chunk.type, chunk.meaning[:7])
                assert not chunk.type.startswith("TYPE")
                groups += chunk.meaning.startswith("group")
    assert groups > 0


def test_a_chunk_that_cannot_be_ends_its_page(tmp_path, inspect):
    binlog = Binlog(tmp_path).groups(10).write()
    binlog.sealed(Position(0, SIZE + 6), b"\xff\xff")
    *_, last = inspect(tmp_path).chunks(0, 1)
    assert (last.offset, last.type) == (5, "damaged")
    assert last.meaning == "type byte 0x41, chunk length 65535"


def test_a_place_where_no_record_begins_is_told(tmp_path, inspect):
    binlog = Binlog(tmp_path, interval=0).groups(10).write()
    inspector = inspect(tmp_path)
    crossing = Position(0, 2 * SIZE)
    view = inspect_record(inspector.pages, crossing)
    following = min(place for place in binlog.places.values() if place > crossing)
    assert view.damage == f"no record begins here, the next one begins at {following}"
    assert inspect_record(inspector.pages, Position(0, 7 * SIZE)).damage is not None


def test_pages_that_are_not_there(tmp_path, inspect):
    Binlog(tmp_path).groups(3).write()
    inspector = inspect(tmp_path)
    for page in (8, 1 << 40):
        with pytest.raises(FormatError, match="no such page"):
            inspector.page_status(0, page)
    with pytest.raises(DiskError):
        inspector.page_status(7, 1)
    with pytest.raises(FormatError, match="the file is empty"):
        inspector.page_status(1, 1)


def test_a_tree_that_bites_its_tail_is_drawn_once(tmp_path, inspect):
    binlog = Binlog(tmp_path, interval=0).groups(1).large_group().write()
    node = binlog.nodes[3]
    binlog.sealed(Position(0, node.offset + 3 + 4), compint.encode(node.offset))
    pages = inspect(tmp_path).pages
    lines = draw_tree(pages, OobReference(5, binlog.nodes[0], binlog.nodes[4]))
    assert len(lines) == 4
    assert lines[-1].startswith(f"!! {node}: the link does not lead backward")


def test_a_huge_tree_is_drawn_in_part(tmp_path, inspect):
    binlog = Binlog(tmp_path, page_size=SIZE, pages=200)
    forest = OobForest()
    for _ in range(NODES_DRAWN_MAX + 50):
        binlog.builder.oob(forest, b"x")
    binlog.write()
    pages = inspect(tmp_path).pages
    lines = draw_tree(pages, forest.reference())
    assert len(lines) == NODES_DRAWN_MAX + 2
    assert lines[-1] == f"... more than {NODES_DRAWN_MAX} are not drawn"


def test_events_before_the_damage_are_shown(tmp_path, inspect):
    binlog = Binlog(tmp_path).groups(1)
    forest, data = OobForest(), event(1200) * 3
    nodes = [binlog.builder.oob(forest, data[at : at + 1200]) for at in range(0, 3600, 1200)]
    place = binlog.builder.commit(numbered(2), lists=[forest.reference()])
    binlog.write()
    assert nodes[1].offset // SIZE == 3
    assert nodes[2].offset // SIZE == 6
    binlog.raw(Position(0, 5 * SIZE + 9), b"\xff")
    view = inspect_record(inspect(tmp_path).pages, place)
    assert [line.type for line in view.events][:2] == ["Gtid", "Query"]
    assert "Page corruption" in view.damage


def test_a_head_that_is_cut_by_its_page_s_end_is_read_on(tmp_path, inspect):
    binlog = Binlog(tmp_path, interval=0).groups(1)
    builder = binlog.builder
    builder.chunk(0x44, b"\xff" * (builder.room - 3 - 20))
    place = builder.commit(numbered(2), event(50))
    binlog.write()
    *_, last = inspect(tmp_path).chunks(0, 1)
    assert (last.offset, last.part, last.meaning) == (place.offset - SIZE, "first", "group 0-1-2")
    binlog.raw(Position(0, 2 * SIZE + 5), b"\xff")
    *_, last = inspect(tmp_path).chunks(0, 1)
    assert last.meaning.startswith("goes on, but cannot be read: Page corruption")


def test_files_that_vanish_while_they_are_listed_are_left_out(tmp_path, inspect):
    """A store that is opened anew makes the next file anew, one that purges removes the oldest."""
    binlog = Binlog(tmp_path).groups(40).write()

    class RestartedDisk(OsDisk):
        def list(self, path):
            return [*super().list(path), "binlog-000129.ibb"]

    shown = [line.name for line in inspect(binlog.path, RestartedDisk()).files()]
    assert shown == sorted(file.name for file in binlog.path.iterdir())
