"""Whatever happens to the bytes: the check ends, and a flipped bit never goes unnoticed."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ibb.storage.page import page_is_zero
from ibb.storage.page_seal import sealed_page
from ibb.storage.verify.finding import Severity

from .both_ways import both_ways, disk_of
from .verify_rig import SIZE, Binlog


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    """Return the files of a binlog with large groups and states, by path."""
    path = tmp_path_factory.mktemp("images")
    binlog = Binlog(path).groups(12).large_group().groups(5).large_group((600, 500, 3)).groups(20)
    binlog.write()
    return {f"/s/{file.name}": file.read_bytes() for file in sorted(path.iterdir())}


def check(images):
    told = both_ways(disk_of(images), "/s")
    return told.findings, told.totals


def flip(image, place):
    at = place % (len(image) * 8)
    image[at // 8] ^= 1 << at % 8


def zero(image, place):
    page = place % (len(image) // SIZE) * SIZE
    image[page : page + SIZE] = bytes(SIZE)


def swap(image, place):
    pages = len(image) // SIZE
    first, second = place % pages * SIZE, place // pages % pages * SIZE
    one, other = image[first : first + SIZE], image[second : second + SIZE]
    image[first : first + SIZE], image[second : second + SIZE] = other, one


def cut(image, place):
    del image[place % len(image) :]


def overwrite(image, place):
    at = place % len(image)
    image[at : at + 20] = b"\xff" * len(image[at : at + 20])


PLACES = st.integers(0, 1 << 40)
DAMAGES = st.tuples(st.sampled_from([flip, zero, swap, cut, overwrite]), PLACES, PLACES)


@given(damages=st.lists(DAMAGES, min_size=1, max_size=6), seal=st.booleans())
@settings(max_examples=150)
def test_no_damage_stops_the_check(images, damages, seal):
    damaged = {path: bytearray(image) for path, image in images.items()}
    for damage, file, place in damages:
        image = damaged[sorted(damaged)[file % len(damaged)]]
        if len(image) >= SIZE:
            damage(image, place)
    if seal:
        for image in damaged.values():
            seal_all(image)
    check(damaged)


def seal_all(image):
    """Make all checksums right: what is damaged must be told from what it means."""
    for page in range(0, len(image) - SIZE + 1, SIZE):
        if not page_is_zero(bytes(image[page : page + SIZE])):
            image[page : page + SIZE] = sealed_page(image[page : page + SIZE])


@given(file=st.integers(0, 3), place=PLACES)
@settings(max_examples=100)
def test_a_flipped_bit_is_always_found(images, file, place):
    path = sorted(images)[file % len(images)]
    image = bytearray(images[path])
    flip(image, place)
    page = place % (len(image) * 8) // 8 // SIZE
    found, _ = check(images | {path: image})
    told = [
        (finding.file, finding.page) for finding in found if finding.severity is Severity.DAMAGE
    ]
    unused = page_is_zero(images[path])  # its header would be damaged, wherever the bit is
    assert (path.removeprefix("/s/"), 0 if unused else page) in told


@given(file=st.integers(0, 2), first=st.integers(1, 7), second=st.integers(1, 7))
def test_pages_in_each_others_place_are_found(images, file, first, second):
    """Their checksums are right; the records or the history tell."""
    path = sorted(images)[file]
    image = bytearray(images[path])
    pages = len(image) // SIZE
    before = bytes(image)
    swap(image, first + second * pages)
    found, _ = check(images | {path: image})
    assert bool(found) == (bytes(image) != before)


def test_the_images_are_sound(images):
    found, totals = check(images)
    assert found == []
    assert totals.groups == 39
