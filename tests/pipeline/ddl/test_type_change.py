"""Whether a column of another type holds every value as it was."""

import pytest

from ibb.pipeline.ddl.type_change import keeps_values


@pytest.mark.parametrize(
    ("old", "new", "keeps"),
    [
        ("tinyint(4)", "decimal(3,0)", True),
        ("mediumint(9)", "decimal(7,0)", True),
        ("mediumint(8) unsigned", "decimal(7,0)", False),
        ("mediumint(8) unsigned", "decimal(9,1)", True),
        ("bigint(20)", "decimal(19,0)", True),
        ("bigint(20)", "decimal(20,2)", False),
        ("bigint(20) unsigned", "decimal(19,0)", False),
        ("bigint(20) unsigned", "decimal(20,0)", True),
        ("bigint(20)", "decimal(39,0)", False),  # which is a text here
        ("bigint(20)", "decimal(19,0) unsigned", False),
    ],
)
def test_integers_in_decimals(old, new, keeps):
    """The longest values of MariaDB's integers have 3, 5, 7 or 8, 10, and 19 or 20 digits."""
    assert keeps_values(old, new, "", "") is keeps
