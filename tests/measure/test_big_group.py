"""No part may hold a group, however large it is."""

import pytest

from .big_group import main

OVER_IDLE_BYTES_MAX = 64 << 20


@pytest.mark.slow
def test_a_huge_group_takes_little_memory_wherever_it_passes(tmp_path):
    figures = main(["--gib=0.25", "--file-size=64M", f"--folder={tmp_path}"])
    assert len(figures) == 7
    assert {name: one for name, one in figures.items() if one.over_idle > OVER_IDLE_BYTES_MAX} == {}
