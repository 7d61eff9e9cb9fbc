"""Tables of a real server whose keys are not what they look like in the binlog."""

import pytest

from ibb.pipeline.tables.errors import PipelineError

pytestmark = [pytest.mark.live, pytest.mark.xdist_group("change_tables")]


def test_keys_that_are_no_plain_primary_keys(topology, tmp_path):
    """Unique ones, those over long values with their unseen hash, and those of moments and bits."""
    primary = topology.primary
    primary.run(
        "CREATE DATABASE odd",
        "USE odd",
        "SET sql_mode = ''",
        "CREATE TABLE uniq (u INT NOT NULL UNIQUE, v INT)",
        "CREATE TABLE hashed (id INT PRIMARY KEY, t TEXT, UNIQUE (t))",
        "CREATE TABLE years (y YEAR PRIMARY KEY)",
        "CREATE TABLE times (t TIME PRIMARY KEY)",
        "CREATE TABLE bits (b BIT(8) PRIMARY KEY)",
        "CREATE SEQUENCE numbers",
        "INSERT INTO uniq VALUES (1, 1), (2, 2)",
        "INSERT INTO hashed VALUES (1, 'x'), (2, NULL)",
        "INSERT INTO years VALUES ('0000'), (1901), (2155)",
        "INSERT INTO times VALUES ('-01:02:03'), ('10:00:00')",
        "INSERT INTO bits VALUES (b'0'), (b'101')",
    )
    config = topology.config(tmp_path, include=("odd.*",))
    topology.run(config)
    assert topology.differences(config) == ([], 5)
    primary.run(
        "USE odd",
        "UPDATE uniq SET v = NEXTVAL(numbers) WHERE u = 1",
        "REPLACE INTO uniq VALUES (2, 9)",
        "UPDATE hashed SET t = 'y' WHERE id = 2",
        "DELETE FROM hashed WHERE id = 1",
        "DELETE FROM years WHERE y = 1901",
        "UPDATE times SET t = '11:00:00' WHERE t > 0",
        "UPDATE bits SET b = b'111' WHERE b = b'101'",
        "ALTER TABLE uniq RENAME TO uniq, ADD w INT DEFAULT 3",
        "ALTER TABLE uniq CHANGE v w INT, CHANGE w v INT",
        "ALTER TABLE hashed DROP INDEX t, ADD UNIQUE (t, id)",
    )
    topology.run(config)
    assert topology.differences(config) == ([], 5)


def test_rows_that_a_foreign_key_changes_are_refused(topology, tmp_path):
    primary = topology.primary
    primary.run(
        "CREATE DATABASE family",
        "USE family",
        "CREATE TABLE parent (id INT PRIMARY KEY)",
        "CREATE TABLE child (p INT, FOREIGN KEY (p) REFERENCES parent (id) ON DELETE CASCADE)",
    )
    config = topology.config(tmp_path, include=("family.*",))
    with pytest.raises(PipelineError, match=r"family.child: its foreign key child_ibfk_1 changes"):
        topology.run(config)
    config = topology.config(tmp_path, include=("family.*",), exclude=("family.child",))
    topology.run(config)
    assert topology.differences(config) == ([], 1)
