"""
Each kind of damage: what the check says of it word by word, where, and what is lost.

The cases are those of the corruption table, ibb-format 14. Every case also shows that files without
a finding can be read to their ends, and that neither this nor the check changes anything.
"""

import pytest

from ibb.storage.file_name import binlog_name

from .binlog_to_damage import GROUPS_IN, write_binlog
from .file_damages import DAMAGES as FILE_DAMAGES
from .page_damages import DAMAGES as PAGE_DAMAGES
from .record_damages import DAMAGES as RECORD_DAMAGES
from .tree_damages import DAMAGES as TREE_DAMAGES
from .verify_rig import digest, groups_of, reports

DAMAGES = [*PAGE_DAMAGES, *FILE_DAMAGES, *RECORD_DAMAGES, *TREE_DAMAGES]


@pytest.fixture
def binlog(tmp_path):
    return write_binlog(tmp_path)


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_damage_of_plain_files(binlog, damage):
    expected = damage(binlog)
    before = digest(binlog.path)
    found = reports(binlog.path)
    assert found == expected
    named = {one.file for one in found}
    for file_no, groups in GROUPS_IN.items():
        if binlog_name(file_no) not in named:
            whole = list(groups)
            until_next = whole[:-1] if binlog_name(file_no + 1) in named else whole
            assert groups_of(binlog.path, file_no) in (whole, until_next)
    assert digest(binlog.path) == before
