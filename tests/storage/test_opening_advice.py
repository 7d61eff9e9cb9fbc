"""What an opening that is refused says can be given up: whoever does so has a store again."""

import pytest

from ibb.protocol.errors import FormatError
from ibb.protocol.gtid import Gtid
from ibb.storage import Store
from ibb.storage.file_name import binlog_name
from ibb.storage.record import Xid

from .events import transaction
from .verify.verify_rig import SIZE, SMALL

GROUPS = 150


def publish(store, seq):
    with store.begin() as group:
        group.write(transaction(f"group {seq}", 200))
        group.commit(Gtid(0, 1, seq))


def written(path, *, prepared=False):
    """Write a store, perhaps with a prepared transaction in its first file; return its end."""
    with Store.open(path, SMALL) as store:
        if prepared:
            group = store.begin()
            group.write(transaction("prepared", 300))
            group.prepare(Xid(1, b"waits", b""))
        for seq in range(1, GROUPS + 1):
            publish(store, seq)
        assert store.end().file_no > 4
        return store.end()


def damage(path, file_no, page_no):
    file = path / binlog_name(file_no)
    image = bytearray(file.read_bytes())
    image[page_no * SIZE + 40] ^= 1
    file.write_bytes(image)
    return file


def contents_of(path):
    return {file.name: file.read_bytes() for file in path.iterdir() if file.name != "ibb.lock"}


def move_away(path, *, before="", behind="~"):
    for file in path.glob("binlog-*.ibb"):
        if file.name <= before or file.name >= behind:
            file.unlink()
    for file in path.glob("ibb-redo-*.log"):
        file.unlink()


@pytest.mark.parametrize("page_no", [0, 1, -1])
def test_damage_in_the_newest_file(tmp_path, page_no):
    end = written(tmp_path)
    file = damage(tmp_path, end.file_no, page_no if page_no >= 0 else end.offset // SIZE)
    before = contents_of(tmp_path)
    with pytest.raises(FormatError, match=r"`ibb verify`.* it and all later ones away") as caught:
        Store.open(tmp_path, SMALL)
    assert caught.value.file == file.name
    assert contents_of(tmp_path) == before
    move_away(tmp_path, behind=file.name)
    with Store.open(tmp_path, SMALL) as store:
        left = [group.gtid.seq for group in store.reader() if group.gtid]
        assert left == list(range(1, len(left) + 1))
        assert 0 < len(left) < GROUPS
        publish(store, 900)


def test_damage_behind_a_prepared_transaction(tmp_path):
    """Nothing tells what was prepared or ended in the damaged page."""
    written(tmp_path, prepared=True)
    file = damage(tmp_path, 2, 3)
    before = contents_of(tmp_path)
    with pytest.raises(FormatError, match=r"`ibb verify`.* it and all earlier ones away") as caught:
        Store.open(tmp_path, SMALL)
    assert caught.value.file == file.name
    assert contents_of(tmp_path) == before
    move_away(tmp_path, before=file.name)
    with Store.open(tmp_path, SMALL) as store:
        assert store.prepared() == []
        publish(store, 900)
        found = [group.gtid for group in store.reader(f"0-1-{GROUPS}") if group.gtid]
        assert found == [Gtid(0, 1, 900)]
