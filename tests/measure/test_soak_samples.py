"""A soak tells a leak from noise and from a warm-up, and a restart from a leak."""

import math
import os
import random

import pytest

from .soak_samples import (
    LIFE_SECONDS_MIN,
    ProcessFigures,
    Sample,
    draw,
    growth,
    percentile,
    process_figures,
    write,
)

HOUR = 3600.0
LOOKS = 720
STAYS = 0.9  # of what drifts, from one look to the next


def looks_of(leak=0.0, *, restarts=(0.1, 0.2), noise=200_000, warm=0.0, drift=0.0, seed=7):
    """
    Return an hour's looks at a process.

    Args:
        leak: bytes a second that it loses.
        restarts: when, in shares of the hour.
        noise: standard deviation in bytes of each look by itself.
        warm: bytes that come in the first minutes of each life.
        drift: standard deviation in bytes of what stays for about a minute.
        seed: of chance.
    """
    rng = random.Random(seed)
    found, slow = [], 0.0
    for number in range(LOOKS):
        at = number * HOUR / LOOKS
        began = max([0.0, *(share * HOUR for share in restarts if share * HOUR <= at)])
        life = sum(share * HOUR <= at for share in restarts)
        slow = STAYS * slow + rng.gauss(0, drift * math.sqrt(1 - STAYS**2))
        memory = 50e6 + 3e6 * life + leak * (at - began) + slow + rng.gauss(0, noise)
        found.append((at, life, memory + warm * (1 - math.exp((began - at) / 120))))
    return found


def test_noise_is_flat_though_each_life_has_another_level():
    assert growth(looks_of()).is_noise


def test_a_leak_is_found_in_noise():
    found = growth(looks_of(2000))
    assert not found.is_noise
    assert found.slope == pytest.approx(2000, rel=0.05)


def test_a_leak_is_found_however_small_it_is_if_there_is_less_noise():
    assert growth(looks_of(20)).is_noise
    assert not growth(looks_of(20, noise=1000)).is_noise


def test_pages_of_arenas_that_were_there_are_no_leak_and_more_of_them_are():
    looks = looks_of(200, noise=1000)
    seconds = growth(looks).seconds
    assert not growth(looks).is_noise
    assert growth(looks, 210 * seconds).is_noise
    assert not growth(looks, 190 * seconds).is_noise


def test_a_warm_up_is_no_leak():
    assert growth(looks_of(warm=20e6)).is_noise


def test_memory_that_moves_slowly_is_no_leak_most_of_the_time():
    wrong = [seed for seed in range(100) if not growth(looks_of(drift=1e6, seed=seed)).is_noise]
    assert len(wrong) <= 5


def test_a_descriptor_that_is_lost_now_and_then_is_found():
    looks = [(at, life, 60 + number // 120) for number, (at, life, _) in enumerate(looks_of())]
    assert not growth(looks).is_noise


@pytest.mark.parametrize("share", [0.5, 0.62, 0.8])
def test_one_thread_more_is_found(share):
    looks = [(at, life, 10 + (at > share * HOUR)) for at, life, _ in looks_of()]
    assert not growth(looks).is_noise


def test_a_descriptor_an_hour_is_found_in_some_hours():
    looks = [(3 * at, life, 60 + number // 240) for number, (at, life, _) in enumerate(looks_of())]
    assert not growth(looks).is_noise


def test_what_never_changes_is_flat():
    assert growth([(at, life, 60) for at, life, _ in looks_of()]).is_noise


def test_lives_too_short_to_tell_are_no_evidence():
    with pytest.raises(ValueError, match=f"for {LIFE_SECONDS_MIN:.0f} s at a stretch"):
        growth(looks_of(2000, restarts=(0.2, 0.4, 0.6, 0.8)))
    with pytest.raises(ValueError, match="at a stretch"):
        growth([])


def test_percentiles_are_values_that_were_seen():
    assert percentile([3, 1, 2], 0.5) == 2
    assert percentile([3, 1, 2], 1.0) == 3


def test_a_process_is_looked_at():
    figures = process_figures([os.getpid()], 3)
    assert figures.life == 3
    assert figures.resident >= figures.anonymous > 1 << 20
    assert figures.descriptors > 2
    assert figures.threads >= 1
    assert figures.processes == 1
    twice = process_figures([os.getpid(), os.getpid()], 3)
    assert twice.anonymous > 1.5 * figures.anonymous
    assert twice.processes == 2


def test_a_process_that_has_ended_takes_nothing():
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
    assert process_figures([child], 0).anonymous == 0  # a zombie
    os.waitpid(child, 0)
    assert process_figures([child], 0) == ProcessFigures(0, 0, 0, 0, 0)


def test_a_picture_is_drawn(tmp_path):
    figures = ProcessFigures(0, 50_000_000, 60_000_000, 60, 20)
    samples = [Sample(at, 0, 1, 2, 3, 0.01, figures, figures, figures) for at in range(30)]
    draw(samples, [(60.0, "relay")], tmp_path / "images" / "soak.png")
    assert (tmp_path / "images" / "soak.png").read_bytes().startswith(b"\x89PNG")
    write(samples, tmp_path / "images" / "soak.csv")
    head, first, *_ = (tmp_path / "images" / "soak.csv").read_text().splitlines()
    named = dict(zip(head.split(","), first.split(","), strict=True))
    assert (named["relay_anonymous"], named["pipeline_threads"]) == ("50000000", "20")
    assert (named["reader_lag"], named["spark_lag"], named["latency"]) == ("1", "3", "0.01")
    assert named["spark_threads"] == "20"
