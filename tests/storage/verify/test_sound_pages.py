"""What the kernel takes, and what it leaves: the check says the same as without it."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ibb.protocol.gtid import Gtid
from ibb.storage.oob_forest import OobForest
from ibb.storage.os_disk import OsDisk
from ibb.storage.page_seal import sealed_page
from ibb.storage.verify import pages
from ibb.storage.verify.open_lists import LISTS_MAX
from ibb.storage.verify.sound_pages import STOPS_MAX

from ...sample_directories import NAMES
from ..binlog_builder import event
from ..random_history import DIRECTORY, RandomHistory
from .both_ways import both_ways, counted, disk_of
from .verify_rig import SIZE, Binlog, numbered

pytestmark = pytest.mark.kernel


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    """Return the files of a binlog with groups of all shapes, by path."""
    path = tmp_path_factory.mktemp("images")
    binlog = Binlog(path).groups(9).large_group().groups(5, size=40).large_group((600, 500, 3))
    binlog.groups(3, size=19).large_group((30,)).groups(2, size=1200).groups(9)
    interleaved(binlog, 2, 6)
    binlog.groups(4).write()
    return {f"/s/{file.name}": file.read_bytes() for file in sorted(path.iterdir())}


def interleaved(binlog, lists, pieces):
    """Append groups with one list each, of which the pieces come in turns."""
    forests = [Pieces(size) for size in range(60, 60 + lists)]
    for _ in range(pieces):
        for forest in forests:
            binlog.builder.oob(forest.forest, forest.piece())
    for forest in forests:
        assert forest.left == b""
        publish(binlog, [forest.forest.reference()])


class Pieces:
    """A list, and what is still to be written of its events, in pieces of equal size."""

    def __init__(self, size, pieces=6):
        self.forest, self.left, self._size = OobForest(), event(size * pieces), size

    def piece(self):
        piece, self.left = self.left[: self._size], self.left[self._size :]
        return piece


def publish(binlog, lists):
    seq = len(binlog.places) + 1
    binlog.places[seq] = binlog.builder.commit(numbered(seq), lists=lists)


@pytest.mark.parametrize("name", NAMES)
def test_samples(sample, name):
    path = sample(name).path
    with counted() as counts:
        told = both_ways(OsDisk(), str(path))
    if "draft" not in name and name != "no-room-1":  # whose states are longer than a page
        assert counts.sound > told.totals.pages / 2


@pytest.mark.parametrize("name", ["small-pages-512-1", "oob-16k-1", "wide-state-1"])
@pytest.mark.parametrize("seed", range(20))
def test_damaged_samples(sample, name, seed):
    """A few bytes in pages of which the checksums are right."""
    rng = random.Random(f"{name} {seed}")
    path = sample(name).path
    images = {f"/s/{file.name}": bytearray(file.read_bytes()) for file in path.iterdir()}
    binlogs = [one for one in images if one.endswith(".ibb") and any(images[one])]
    for _ in range(rng.choice((1, 1, 3, 20))):
        image = images[rng.choice(binlogs)]
        page_size = 1 << image[4]
        at = rng.randrange(page_size, len(image) - 4)
        change(image, at, page_size, rng.choice((0, 255, rng.randrange(256))), rng.random() < 0.8)
    both_ways(disk_of(images), "/s")


def change(image, at, page_size, byte, is_sealed):
    """Change a byte in an image; unused pages stay unused."""
    start = at - at % page_size
    if not any(image[start : start + page_size]):
        return
    image[at] = byte
    if is_sealed:
        image[start : start + page_size] = sealed_page(image[start : start + page_size])


@given(seed=st.integers(0, 1 << 30))
@settings(max_examples=15)
def test_histories(seed):
    history = RandomHistory(seed)
    history.run()
    told = both_ways(history.disk, DIRECTORY)
    assert [
        str(finding.kind) for finding in told.findings if finding.kind.severity == "damage"
    ] == []


@given(
    seed=st.integers(0, 1 << 30), places=st.lists(st.integers(0, 1 << 40), min_size=1, max_size=9)
)
@settings(max_examples=25)
def test_damaged_histories(seed, places):
    history = RandomHistory(seed)
    history.run()
    images = {
        f"{DIRECTORY}/{name}": bytearray(history.disk.contents(f"{DIRECTORY}/{name}"))
        for name in history.disk.list(DIRECTORY)
    }
    binlogs = sorted(one for one in images if one.endswith(".ibb") and images[one][0])
    for place in places:
        image = images[binlogs[place % len(binlogs)]]
        page_size = 1 << image[4]
        at = place // 7 % len(image)
        change(image, at, page_size, place % 251, at >= page_size and place % 3 > 0)
    both_ways(disk_of(images), DIRECTORY)


@pytest.mark.parametrize("step", range(4))
@pytest.mark.parametrize("is_sealed", [True, False])
def test_every_byte(images, step, is_sealed):
    """Every 29th byte of a file behind its header, set to another value."""
    path = sorted(images)[1]
    for at in range(SIZE + step, len(images[path]), 29):
        image = bytearray(images[path])
        byte = (image[at] ^ 1, image[at] ^ 128, 0, 255)[step]
        change(image, at, SIZE, byte, is_sealed)
        both_ways(disk_of(images | {path: bytes(image)}), "/s")


@given(
    places=st.lists(
        st.tuples(st.integers(0, 1 << 40), st.binary(min_size=1, max_size=4)),
        min_size=1,
        max_size=3,
    )
)
@settings(max_examples=200)
def test_bytes_that_mean_something_else(images, places):
    damaged = {path: bytearray(image) for path, image in images.items()}
    for place, data in places:
        image = damaged[sorted(damaged)[place % 3]]
        at = SIZE + place // 3 % (len(image) - SIZE - 4)
        for offset, byte in enumerate(data):
            change(image, at + offset, SIZE, byte, is_sealed=True)
    both_ways(disk_of(damaged), "/s")


@pytest.mark.parametrize("window", [SIZE, 3 * SIZE])
def test_records_that_begin_in_an_earlier_window(images, window, monkeypatch):
    """What turns out to be odd is left to others from its beginning on, which is read again."""
    monkeypatch.setattr(pages, "WINDOW_BYTES", window)
    both_ways(disk_of(images), "/s")
    path = sorted(images)[1]
    for at in range(SIZE, len(images[path]), 61):
        image = bytearray(images[path])
        change(image, at, SIZE, image[at] ^ 1, at % 2)
        both_ways(disk_of(images | {path: bytes(image)}), "/s")


def test_a_file_that_ends_inside_a_page_or_a_record(images):
    path = sorted(images)[1]
    for size in range(SIZE, len(images[path]), 97):
        both_ways(disk_of(images | {path: images[path][:size]}), "/s")


@pytest.mark.parametrize("lists", [1, 2, LISTS_MAX])
def test_lists_that_lie_in_one_file_are_read_once(tmp_path, lists):
    binlog = Binlog(tmp_path, pages=64).groups(3)
    interleaved(binlog, lists, 6)
    binlog.groups(3).write()
    with counted() as counts:
        told = both_ways(OsDisk(), str(tmp_path))
    assert told.findings == []
    assert told.totals.groups == 6 + lists
    assert counts.trees == lists  # without the kernel


def test_a_list_that_was_forgotten_for_others_is_read_again(tmp_path):
    binlog = Binlog(tmp_path, pages=64).groups(3)
    interleaved(binlog, LISTS_MAX + 1, 6)
    binlog.write()
    with counted() as counts:
        assert both_ways(OsDisk(), str(tmp_path)).findings == []
    assert counts.trees > LISTS_MAX + 1


def test_a_group_with_two_lists(tmp_path):
    binlog = Binlog(tmp_path, pages=64).groups(1)
    first, second = Pieces(100), Pieces(70)
    for _ in range(6):
        binlog.builder.oob(first.forest, first.piece())
        binlog.builder.oob(second.forest, second.piece())
    publish(binlog, [first.forest.reference(), second.forest.reference()])
    binlog.groups(1).write()
    with counted() as counts:
        assert both_ways(OsDisk(), str(tmp_path)).findings == []
    assert counts.trees == 1


def test_many_domains_and_servers_in_turns(tmp_path):
    """More than are looked back for, and numbers that go back."""
    binlog = Binlog(tmp_path, pages=64, interval=8)
    rng = random.Random(7)
    seqs = {}
    for _ in range(300):
        domain = rng.choice((0, 0, 1, 2, rng.randrange(40)))
        seqs[domain] = seqs.get(domain, 0) + rng.choice((1, 1, 1, 2, 5, 0, -1))
        gtid = Gtid(domain, rng.choice((1, 1, 1, 2)), max(seqs[domain], 1))
        binlog.builder.commit(gtid, event(40))
    binlog.write()
    told = both_ways(OsDisk(), str(tmp_path))
    kinds = {str(finding.kind) for finding in told.findings}
    assert {"gtid-order", "gtid-duplicate"} <= kinds


def test_pages_full_of_records_that_are_not_for_the_kernel(tmp_path):
    """It is not asked at each of them."""
    binlog = Binlog(tmp_path, page_size=4096, interval=0).groups(2)
    for _ in range(300):
        binlog.builder.record(9, b"unknown")
    binlog.groups(2).write()
    with counted() as counts:
        told = both_ways(OsDisk(), str(tmp_path))
    assert told.totals.records == 305
    assert counts.sound < 2 * STOPS_MAX
