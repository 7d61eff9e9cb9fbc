"""An hour of samples, and what a plot gets of it."""

from ibb.server.dashboard.samples import POINTS_MAX, SAMPLES_MAX, Sample, Samples


def sample(number, **changed):
    return Sample(float(number), 10.0, 1.0, 20.0, 2, 0, 0, 0, None)._replace(**changed)


def test_the_oldest_go_when_there_are_too_many():
    samples = Samples()
    for number in range(SAMPLES_MAX + 5):
        samples.add(sample(number))
    assert len(samples) == SAMPLES_MAX
    assert [one.time for one in samples.last(2)] == [SAMPLES_MAX + 3, SAMPLES_MAX + 4]
    assert samples.last(0) == []


def test_a_long_plot_has_means_of_rates_and_the_highest_lag():
    samples = Samples()
    for number in range(SAMPLES_MAX):
        samples.add(sample(number, bytes_written=float(number % 3)))
    samples.add(sample(SAMPLES_MAX, bytes_behind=99, seconds_behind=7, bytes_written=4.0))
    found = samples.last(SAMPLES_MAX)
    assert len(found) == POINTS_MAX
    last = found[-1]
    assert (last.time, last.bytes_behind, last.seconds_behind) == (SAMPLES_MAX, 99, 7)
    assert last.bytes_written == (1.0 + 2.0 + 4.0) / 3
    assert last.seconds_behind_upstream is None
