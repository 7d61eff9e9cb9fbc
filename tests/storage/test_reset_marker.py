"""The decision to delete a binlog is believed only if it is whole."""

from pathlib import Path

import pytest

from ibb.protocol.binlog_state import BinlogState
from ibb.protocol.errors import FormatError
from ibb.storage import Store
from ibb.storage.disk import OsDisk
from ibb.storage.reset_marker import MARKER_NAME, ResetMarker

from .test_administration import OPTIONS, gtids, publish


@pytest.mark.parametrize("damage", ["another digit", "a byte too few", "a byte too many", "cut"])
def test_a_damaged_one_deletes_nothing(tmp_path: Path, damage: str) -> None:
    with Store.open(tmp_path, OPTIONS) as store:
        publish(store, "0-1-1")
    ResetMarker(OsDisk(), str(tmp_path)).write(BinlogState.parse("0-1-77"))
    marker = tmp_path / MARKER_NAME
    whole = marker.read_bytes()
    marker.write_bytes(
        {
            "another digit": whole[:-1] + b"8",
            "a byte too few": whole[:-1],
            "a byte too many": whole + b"7",
            "cut": whole[:3],
        }[damage]
    )
    before = {path.name: path.read_bytes() for path in tmp_path.glob("binlog-*")}
    with pytest.raises(FormatError, match="remove it to keep the binlog as it is") as caught:
        Store.open(tmp_path, OPTIONS)
    assert MARKER_NAME in str(caught.value)
    assert {path.name: path.read_bytes() for path in tmp_path.glob("binlog-*")} == before
    marker.unlink()
    with Store.open(tmp_path, OPTIONS) as store:
        assert gtids(store) == ["0-1-1"]
