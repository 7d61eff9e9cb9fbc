"""The format description in force is found by the sidecar, by its record, or by a scan."""

import json

import pytest

from ibb.protocol.gtid import Gtid
from ibb.storage import Store, format_catalogue
from ibb.storage.directory import BinlogDirectory
from ibb.storage.errors import DiskError
from ibb.storage.format_catalogue import SIDECAR_NAME, FormatCatalogue, read_sidecar
from ibb.storage.os_disk import OsDisk
from ibb.storage.position import Position

from ..faults.sim_disk import Fault, SimDisk
from .binlog_builder import BinlogBuilder, event

SIZE = 512
END = Position(99, 0)


def description(number):
    return event(60, event_type=15, fill=bytes([number]))


@pytest.fixture
def restarted(tmp_path):
    """Groups over some files, and four restarts: (place, event)."""
    builder = BinlogBuilder(interval=2)
    builder.restarts = []
    for seq in range(1, 60):
        if seq in (1, 9, 10, 40):
            data = description(seq)
            builder.restarts.append((builder.record(1, b"\0" + data), data))
        builder.commit(Gtid(0, 1, seq), event(150))
    builder.path = builder.write(tmp_path)
    return builder


def open_directory(path):
    return BinlogDirectory(OsDisk(), str(path))


def with_sidecar(source, path):
    return FormatCatalogue(source, (OsDisk(), f"{path}/{SIDECAR_NAME}"))


def check_all_places(catalogue, restarts, *, first=None):
    assert catalogue.in_force(restarts[0][0]) == first
    last = first
    for place, data in restarts:
        assert catalogue.in_force(place) == last
        assert catalogue.in_force(Position(place.file_no, place.offset + 1)) == data
        last = data
    assert catalogue.in_force(END) == last


def test_a_directory_without_a_sidecar_is_scanned(restarted):
    catalogue = FormatCatalogue(open_directory(restarted.path))
    check_all_places(catalogue, restarted.restarts)
    check_all_places(catalogue, restarted.restarts)


def test_each_file_is_scanned_once(restarted, monkeypatch):
    source = open_directory(restarted.path)
    catalogue = FormatCatalogue(source)
    last = source.end()
    assert catalogue.in_force(last) == restarted.restarts[-1][1]
    pages = []
    read_page = source.read_page
    monkeypatch.setattr(
        source, "read_page", lambda *place: pages.append(place) or read_page(*place)
    )
    assert catalogue.in_force(last) == restarted.restarts[-1][1]
    assert len(pages) <= 1


def test_the_sidecar_answers_without_a_scan(restarted, monkeypatch):
    source = open_directory(restarted.path)
    catalogue = with_sidecar(source, restarted.path)
    for place, data in restarted.restarts:
        catalogue.add(place, data)
    monkeypatch.setattr(FormatCatalogue, "_scan", None)
    check_all_places(with_sidecar(source, restarted.path), restarted.restarts[1:],
                     first=restarted.restarts[0][1])  # fmt: skip


def test_what_lies_before_the_sidecar_is_scanned(restarted):
    source = open_directory(restarted.path)
    with_sidecar(source, restarted.path).add(*restarted.restarts[2])
    with_sidecar(source, restarted.path).add(*restarted.restarts[3])
    check_all_places(with_sidecar(source, restarted.path), restarted.restarts)


def test_entries_whose_record_never_was_are_ignored(restarted):
    source = open_directory(restarted.path)
    catalogue = with_sidecar(source, restarted.path)
    places = [place for place, _ in restarted.restarts]
    catalogue.add(places[0], restarted.restarts[0][1])
    catalogue.add(Position(0, places[0].offset + 7), description(77))  # in the middle of a record
    catalogue.add(places[1], description(78))  # another event is there
    for entry in restarted.restarts[2:]:
        catalogue.add(*entry)
    catalogue.add(Position(98, SIZE), description(79))  # behind the end
    found = with_sidecar(source, restarted.path)
    assert found.in_force(places[1]) == restarted.restarts[0][1]
    assert found.in_force(places[2]) == restarted.restarts[0][1]
    assert found.in_force(END) == restarted.restarts[3][1]


def test_a_place_written_again_after_a_crash_takes_the_later_entries_place(restarted):
    source = open_directory(restarted.path)
    catalogue = with_sidecar(source, restarted.path)
    catalogue.add(restarted.restarts[3][0], description(70))
    catalogue.add(Position(90, SIZE), description(71))
    catalogue.add(*restarted.restarts[3])
    kept = json.loads((restarted.path / SIDECAR_NAME).read_text())["entries"]
    assert len(kept) == 1
    assert with_sidecar(source, restarted.path).in_force(END) == restarted.restarts[3][1]


def test_of_purged_files_the_last_entry_stays(restarted):
    source = open_directory(restarted.path)
    catalogue = with_sidecar(source, restarted.path)
    for entry in restarted.restarts[:3]:
        catalogue.add(*entry)
    last_file = source.last_file()
    for number in range(last_file):
        (restarted.path / f"binlog-{number:06d}.ibb").unlink()
    source.refresh()
    assert catalogue.in_force(Position(last_file, SIZE)) == restarted.restarts[2][1]
    end = Position(last_file, 3 * SIZE)
    catalogue.add(end, description(80))
    entries = json.loads((restarted.path / SIDECAR_NAME).read_text())["entries"]
    assert [entry[:2] for entry in entries] == [list(restarted.restarts[2][0]), list(end)]


def test_the_number_of_entries_is_bounded(restarted, monkeypatch):
    monkeypatch.setattr(format_catalogue, "ENTRIES_MAX", 2)
    source = open_directory(restarted.path)
    catalogue = with_sidecar(source, restarted.path)
    for entry in restarted.restarts:
        catalogue.add(*entry)
    content = json.loads((restarted.path / SIDECAR_NAME).read_text())
    assert len(content["entries"]) == 2
    assert content["complete_from"] == list(restarted.restarts[2][0])
    check_all_places(catalogue, restarted.restarts)


def test_damage_in_an_old_file_does_not_stop_a_reader_behind_it(restarted):
    file = restarted.path / "binlog-000000.ibb"
    image = bytearray(file.read_bytes())
    image[4 * SIZE + 50] ^= 1
    file.write_bytes(image)
    catalogue = FormatCatalogue(open_directory(restarted.path))
    assert catalogue.in_force(Position(1, SIZE)) == restarted.restarts[0][1]
    assert "Page corruption" in catalogue.warnings[0]
    assert catalogue.in_force(END) == restarted.restarts[3][1]


@pytest.mark.parametrize(
    "text",
    [
        "", "{}", "[]", "[" * 100_000, '{"version": 2, "complete_from": [0, 0], "entries": []}',
        '{"version": 1, "complete_from": [0, -1], "entries": []}',
        '{"version": 1, "complete_from": [0, 0], "entries": [[0, 512]]}',
        '{"version": 1, "complete_from": [0, 0], "entries": [[0, 512, "%%%"]]}',
        '{"version": 1, "complete_from": [0, 0], "entries": [[1, 512, ""], [0, 512, ""]]}',
        '{"version": 1, "complete_from": 3, "entries": []}',
    ],
)  # fmt: skip
def test_a_damaged_sidecar_is_logged_set_aside_and_made_anew(restarted, text, caplog):
    """The records tell the same; a reader that only looks leaves the file as it is."""
    sidecar = restarted.path / SIDECAR_NAME
    sidecar.write_text(text)
    catalogue = with_sidecar(open_directory(restarted.path), restarted.path)
    assert SIDECAR_NAME in caplog.text
    check_all_places(catalogue, restarted.restarts)
    assert sidecar.read_text() == text
    event = description(99)
    catalogue.add(END, event)
    (copy,) = restarted.path.glob("*.aside-*")
    assert copy.read_text() == text
    caplog.clear()
    again = with_sidecar(open_directory(restarted.path), restarted.path)
    assert not caplog.text
    check_all_places(again, restarted.restarts)
    assert [entry.event for entry in again._entries] == [event]


def test_a_store_opens_with_a_damaged_sidecar(tmp_path):
    Store.open(tmp_path).close()
    with (tmp_path / SIDECAR_NAME).open("a") as sidecar:
        sidecar.write("x")
    with Store.open(tmp_path) as store:
        assert store.formats.in_force(store.end()) is not None
    assert read_sidecar(OsDisk(), str(tmp_path / SIDECAR_NAME)) is not None


def test_the_sidecar_is_replaced_in_one_step_and_durable():
    disk = SimDisk()
    disk.make_dir("d")
    source = BinlogDirectory(disk, "d")
    catalogue = FormatCatalogue(source, (disk, "d/formats.json"))
    catalogue.add(Position(0, 600), description(1))
    kinds = [op.kind for op in disk.log]
    assert kinds[kinds.index("sync") :] == ["sync", "rename", "sync_dir"]
    disk.faults.append(Fault(lambda op: op.kind == "sync"))
    with pytest.raises(DiskError):
        catalogue.add(Position(0, 700), description(2))
    again = FormatCatalogue(source, (disk, "d/formats.json"))
    assert [entry.event for entry in again._entries] == [description(1)]
    assert [entry.event for entry in catalogue._entries] == [description(1)]
