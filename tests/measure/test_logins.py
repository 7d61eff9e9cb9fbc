"""What `scripts/measure-logins` measures is what it says."""

from .logins import chance_of, main, ways


def test_a_small_run_compares_every_method_and_cost(capsys):
    found = main(["--logins=5", "--rounds=9"])
    assert list(found) == list(ways())
    for way, (known, unknown, chance) in found.items():
        assert 0 < known < 60, way
        assert 0 < unknown < 60, way
        assert 0 < chance <= 1, way
    assert len(capsys.readouterr().out.splitlines()) == 1 + len(found)


def test_a_difference_that_there_is_is_not_by_chance():
    times = [1.0 + number % 17 / 100 for number in range(200)]
    assert chance_of(times, [value + 0.05 for value in times], 199, 1) == 1 / 200
    assert chance_of(times, times[::-1], 199, 1) == 1.0
