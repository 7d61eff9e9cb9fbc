"""What the machine can do at best."""

from dataclasses import astuple

from ibb.bench.limits import measure_limits


def test_each_limit_is_measured_and_nothing_is_left_on_the_disk(tmp_path):
    limits = measure_limits(tmp_path, 0.05)
    assert all(value > 0 for value in astuple(limits))
    assert limits.serve_processor > limits.loopback_processor / 2
    assert list(tmp_path.iterdir()) == []
