"""Tables altered by way of a copy, as gh-ost and pt-online-schema-change do it at a server."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from ...integration.waiting import wait_until

pytestmark = [pytest.mark.live, pytest.mark.xdist_group("change_tables")]

LOCK_SECONDS = 30
TABLE = "id INT NOT NULL PRIMARY KEY, w VARCHAR(20), d DATE"
CLAUSES = "ADD n INT NOT NULL DEFAULT 7, MODIFY id BIGINT NOT NULL, DROP d, ADD KEY (w)"
LATER = (
    "INSERT INTO shop.t (id, w, n) VALUES (1001, 'new', 1), (1002, 'newer', 2)",
    "UPDATE shop.t SET n = n + id WHERE id MOD 3 = 0",
    "DELETE FROM shop.t WHERE id MOD 7 = 0",
)
TRIGGERS = {
    "del": "DELETE IGNORE FROM shop._t_new WHERE shop._t_new.id <=> OLD.id",
    "upd": (
        "DELETE IGNORE FROM shop._t_new WHERE !(OLD.id <=> NEW.id) AND shop._t_new.id <=> OLD.id;"
        " REPLACE INTO shop._t_new (id, w) VALUES (NEW.id, NEW.w)"
    ),
    "ins": "REPLACE INTO shop._t_new (id, w) VALUES (NEW.id, NEW.w)",
}


@pytest.fixture
def primary(topology):
    topology.primary.run(
        "CREATE OR REPLACE DATABASE shop",
        "USE shop",
        f"CREATE TABLE shop.t ({TABLE})",
        "INSERT INTO shop.t SELECT seq, CONCAT('w', seq), '2024-02-29' FROM seq_1_to_100",
        "CREATE TABLE shop.other (id INT)",
    )
    return topology.primary


def as_gh_ost_does(primary, between):
    """Write what comes from the binlog to the copy, and cut over under the lock of a sentry."""
    primary.run(
        "create /* gh-ost */ table `shop`.`_t_ghc` (id bigint unsigned auto_increment, last_update"
        " timestamp not null DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP, hint"
        " varchar(64) charset ascii not null, value varchar(4096) charset ascii not null,"
        " primary key(id), unique key hint_uidx(hint)) auto_increment=256 comment='gh-ost'",
        "create /* gh-ost */ table `shop`.`_t_gho` like `shop`.`t`",
        f"alter /* gh-ost */ table `shop`.`_t_gho` {CLAUSES}",
        "insert /* gh-ost */ into `shop`.`_t_ghc` (id, hint, value) values (NULLIF(1, 0),"
        " 'state', 'GhostTableMigrated') on duplicate key update value = VALUES(value)",
    )
    for first in range(0, 100, 25):
        primary.run(
            f"UPDATE shop.t SET w = CONCAT(w, '.') WHERE id = {first + 9}",
            f"replace /* gh-ost */ into shop._t_gho (id, w) VALUES ({first + 9}, 'w{first + 9}.')",
            "insert /* gh-ost */ ignore into `shop`.`_t_gho` (`id`, `w`) (select `id`, `w` from"
            f" `shop`.`t` force index (`PRIMARY`) where `id` > {first} and `id` <= {first + 25}"
            " lock in share mode)",
            f"DELETE FROM shop.t WHERE id = {first + 3}",
            f"delete /* gh-ost */ from shop._t_gho where id = {first + 3}",
            "insert /* gh-ost */ into `shop`.`_t_ghc` (hint, value) values ('heartbeat', NOW(6))"
            " on duplicate key update value = VALUES(value)",
        )
        between()
    with primary.connection() as locks, locks.cursor() as cursor, ThreadPoolExecutor(1) as pool:
        cursor.execute(
            "create /* gh-ost */ table `shop`.`_t_del` (id int auto_increment primary key)"
            " engine=InnoDB comment='ghost-cut-over-sentry'"
        )
        cursor.execute("lock /* gh-ost */ tables `shop`.`t` write, `shop`.`_t_del` write")
        swap = (
            "rename /* gh-ost */ table `shop`.`t` to `shop`.`_t_del`, `shop`.`_t_gho` to `shop`.`t`"
        )
        swapped = pool.submit(primary.run, swap)
        waits = (
            "SELECT 1 FROM information_schema.processlist WHERE info LIKE 'rename /* gh-ost%'"
            " AND state LIKE 'Waiting for table metadata lock'"
        )
        wait_until(lambda: primary.rows(waits), LOCK_SECONDS)
        cursor.execute("drop /* gh-ost */ table if exists `shop`.`_t_del`")
        cursor.execute("unlock /* gh-ost */ tables")
        swapped.result()
    primary.run(*LATER[:1], "drop /* gh-ost */ table if exists `shop`.`_t_ghc`", LATER[1])
    between()
    primary.run("DROP TABLE shop._t_del", LATER[2])


def as_pt_online_schema_change_does(primary, between):
    """Have triggers write to the copy, in the groups of those who write to the table."""
    ((_, made),) = primary.rows("SHOW CREATE TABLE shop.t")
    primary.run(
        "USE shop",
        made.replace("`t`", "`shop`.`_t_new`", 1),
        f"ALTER TABLE `shop`.`_t_new` {CLAUSES}",
        *(
            f"CREATE TRIGGER pt_osc_shop_t_{kind} AFTER {event} ON shop.t FOR EACH ROW BEGIN"
            f" DECLARE CONTINUE HANDLER FOR 1146 begin end; {TRIGGERS[kind]}; END"
            for kind, event in (("del", "DELETE"), ("upd", "UPDATE"), ("ins", "INSERT"))
        ),
    )
    for first in range(0, 100, 25):
        primary.run(
            f"UPDATE shop.t SET w = CONCAT(w, '.'), id = id + 200 WHERE id = {first + 9}",
            "INSERT LOW_PRIORITY IGNORE INTO shop._t_new (id, w) SELECT id, w FROM shop.t FORCE"
            f" INDEX(PRIMARY) WHERE id > {first} AND id <= {first + 25} LOCK IN SHARE MODE"
            " /*pt-online-schema-change 4711 copy nibble*/",
            f"DELETE FROM shop.t WHERE id = {first + 3}",
            f"REPLACE INTO shop.t VALUES ({first + 300}, 'late', NULL), ({first + 1}, 'r', NULL)",
        )
        between()
    primary.run(
        "ANALYZE TABLE `shop`.`_t_new` /* pt-online-schema-change */",
        "RENAME TABLE `shop`.`t` TO `shop`.`_t_old`, `shop`.`_t_new` TO `shop`.`t`",
        LATER[0],
        "DROP TABLE IF EXISTS `shop`.`_t_old`",
        LATER[1],
        *(f"DROP TRIGGER IF EXISTS shop.pt_osc_shop_t_{kind}" for kind in TRIGGERS),
        LATER[2],
    )


@pytest.mark.parametrize("kind", ["delta", "parquet"])
@pytest.mark.parametrize("tool", [as_gh_ost_does, as_pt_online_schema_change_does])
def test_a_table_that_is_altered_by_way_of_a_copy(topology, primary, tmp_path, tool, kind):
    """The same by a pipeline that was there all the time, and by one that sleeps until the end."""
    wanted = {"include": ("shop.t", "shop._t_*"), "format": kind, "batch_groups": 4}
    awake = topology.config(tmp_path / "awake", history=("shop.*",), **wanted)
    asleep = topology.config(tmp_path / "asleep", **wanted)
    for config in (awake, asleep):
        topology.run(config)
    tool(primary, lambda: topology.run(awake))
    for config, tables in ((awake, 2), (asleep, 1)):
        topology.run(config)
        assert topology.differences(config) == ([], tables)
    assert primary.value("(SELECT COUNT(*) FROM shop.t WHERE n > 7)") > 0


@pytest.mark.parametrize("kind", ["delta", "parquet"])
def test_two_tables_that_change_their_names_through_a_third(topology, primary, tmp_path, kind):
    config = topology.config(tmp_path, include=("shop.*",), history=("shop.*",), format=kind)
    topology.run(config)
    swap = "RENAME TABLE shop.t TO shop.tmp, shop.other TO shop.t, shop.tmp TO shop.other"
    primary.run(
        "DELETE FROM shop.t WHERE id < 50",
        "INSERT INTO shop.other VALUES (1), (1)",
        swap,
        "INSERT INTO shop.t VALUES (2)",
        "UPDATE shop.other SET w = 'moved' WHERE id > 90",
        swap,
        swap,
        "DELETE FROM shop.t LIMIT 1",
    )
    topology.run(config)
    assert topology.differences(config) == ([], 4)
