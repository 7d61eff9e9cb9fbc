"""What `scripts/measure-restart` measures is what it says."""

from .restart import main


def test_a_small_run_opens_every_kind_of_directory(tmp_path, capsys):
    arguments = ["--files=2", "--file-size=8M", "--redo=1M", "--sparse=3", "--rounds=1"]
    left = main([*arguments, f"--folder={tmp_path}"])
    assert left.end.file_no == 4
    assert 0.9 < left.redo_bytes / (1 << 20) <= 1
    assert left.groups > 1000
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 1 + 2 * 3 * 2
    assert [line.split()[:2] for line in lines[1::6]] == [["open_store", "6"], ["open_store", "3"]]
    assert not list(tmp_path.iterdir())
