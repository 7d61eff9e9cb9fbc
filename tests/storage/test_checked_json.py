"""Text that knows its own checksum: a bit that flips is noticed, a person's edit is not refused."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ibb.protocol.gtid import Gtid
from ibb.storage import Store, StoreOptions
from ibb.storage.checked_json import CHECKSUM_KEY, encode_checked, parse_checked
from ibb.storage.format_catalogue import SIDECAR_NAME
from ibb.storage.leases import LEASES_NAME

from ..faults.sim_disk import SimDisk
from .events import transaction

# The disk is memory: no gibibytes that are allocated ahead.
OPTIONS = StoreOptions(max_binlog_size=1 << 20, redo_segment_size=1 << 20, background=False)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=9,
)
CONTENTS = st.dictionaries(st.text().filter(lambda key: key != CHECKSUM_KEY), VALUES)


@given(CONTENTS, st.sampled_from([0, 1]))
def test_what_was_said_is_read(content, indent):
    assert parse_checked(encode_checked(content, indent=indent)) == content


def store_with_small_files():
    disk = SimDisk()
    with Store.open("/s", OPTIONS, disk=disk) as store:
        with store.begin() as group:
            group.write(transaction("insert"))
            group.commit(Gtid(0, 1, 1))
        store.leases.renew("spark checkpoint", "0-1-1", age_limit=3600.5)
        store.leases.renew("archive", "", age_limit=None)
    return disk


@pytest.mark.parametrize("name", [LEASES_NAME, SIDECAR_NAME])
def test_no_bit_of_a_file_can_flip_and_say_something_else(name):
    text = store_with_small_files().contents(f"/s/{name}")
    content = parse_checked(text)
    assert content == {key: value for key, value in json.loads(text).items() if key != CHECKSUM_KEY}
    told = 0
    for at in range(len(text)):
        for bit in range(8):
            flipped = text[:at] + bytes([text[at] ^ 1 << bit]) + text[at + 1 :]
            try:
                found = parse_checked(flipped)
            except ValueError:
                told += 1
                continue
            assert content.items() <= found.items()  # spaces, or the checksum's own name
    assert told > 4 * len(text)


def test_what_a_person_changed_counts_without_the_checksum():
    content = {"leases": [{"name": "spark"}]}
    text = encode_checked(content, indent=1).replace(b"spark", b"flink")
    with pytest.raises(ValueError, match="leave 'crc32c' out"):
        parse_checked(text)
    changed = json.loads(text)
    del changed[CHECKSUM_KEY]
    assert parse_checked(json.dumps(changed).encode()) == {"leases": [{"name": "flink"}]}


def test_a_misread_of_a_small_file_is_read_again():
    disk, lies = store_with_small_files(), []

    def lie(path, offset, data):
        if not path.endswith(LEASES_NAME) or lies:
            return data
        lies.append(path)
        return data.replace(b'"0-1-1"', b'"0-1-9"')

    disk.lies.append(lie)
    with Store.open("/s", OPTIONS, disk=disk) as store:
        assert [lease.position for lease in store.leases.all()] == ["", "0-1-1"]
    assert len(lies) == 1
