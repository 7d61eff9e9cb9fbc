"""What `scripts/measure-rows` measures is what it says."""

import pytest

from .rows import main


@pytest.mark.live
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # in the other reader
def test_a_small_run_reads_both_kinds_of_rows(capsys):
    found = main(["--rows=600", "--theirs=300"])
    assert list(found) == ["bulk", "one-row"]
    assert all(rate > 0 for rates in found.values() for rate in rates)
    assert capsys.readouterr().out.count("python-mysql-replication") == 2
