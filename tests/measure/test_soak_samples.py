"""A soak tells a leak from noise, and a restart from a leak."""

import os
import random

import pytest

from .soak_samples import (
    MEMORY_GROWTH_MAX,
    Sample,
    draw,
    growth,
    percentile,
    process_figures,
)

HOUR = 3600.0


def samples_of(leak, *, restarts=(0.1, 0.2), noise=200_000, count=720):
    """Return an hour's samples of a process that loses *leak* bytes a second."""
    rng = random.Random(7)
    found = []
    for number in range(count):
        at = number * HOUR / count
        began = max([0.0, *(share * HOUR for share in restarts if share * HOUR <= at)])
        life = sum(share * HOUR <= at for share in restarts)
        memory = 50e6 + 3e6 * life + leak * (at - began) + rng.gauss(0, noise)
        found.append(Sample(at, life, int(memory), int(memory) + 9_000_000, 60, 20, 0, 0.01))
    return found


def memory(sample):
    return sample.anonymous


def test_noise_is_flat_though_each_life_has_another_level():
    assert growth(samples_of(0), memory).is_noise(HOUR, MEMORY_GROWTH_MAX)


def test_a_leak_is_found_in_noise():
    found = growth(samples_of(2000), memory)
    assert not found.is_noise(HOUR, MEMORY_GROWTH_MAX)
    assert found.slope == pytest.approx(2000, rel=0.05)


def test_growth_that_matters_to_nobody_is_none():
    assert growth(samples_of(100), memory).is_noise(HOUR, MEMORY_GROWTH_MAX)


def test_a_descriptor_that_is_lost_now_and_then_is_found():
    samples = [
        one._replace(descriptors=60 + number // 120) for number, one in enumerate(samples_of(0))
    ]
    assert not growth(samples, lambda one: one.descriptors).is_noise(HOUR, 1.0)


def test_lives_too_short_to_tell_are_no_evidence():
    with pytest.raises(ValueError, match="no process lived"):
        growth(samples_of(0, count=3), memory)


def test_percentiles_are_values_that_were_seen():
    assert percentile([3, 1, 2], 0.5) == 2
    assert percentile([3, 1, 2], 1.0) == 3


def test_a_process_is_looked_at():
    figures = process_figures(os.getpid())
    assert figures.resident >= figures.anonymous > 1 << 20
    assert figures.descriptors > 2
    assert figures.threads >= 1


def test_a_picture_is_drawn(tmp_path):
    draw(samples_of(0, count=30), [(60.0, "relay")], tmp_path / "images" / "soak.png")
    assert (tmp_path / "images" / "soak.png").read_bytes().startswith(b"\x89PNG")
