"""The configuration file: what is wrong is named by its key."""

import re
from dataclasses import fields
from pathlib import Path

import pytest

from ibb.pipeline.tables.config import CompactionConfig, ConfigError, ServerConfig, read_config
from ibb.pipeline.tables.errors import PipelineError
from ibb.pipeline.tables.row_changes import TableName

SMALLEST = '[source]\npath = "binlogs"\n[target]\npath = "s3://lake/shop"\n'


def read(tmp_path, text):
    (tmp_path / "pipeline.toml").write_text(text)
    return read_config(tmp_path / "pipeline.toml")


def test_little_is_needed(tmp_path):
    config = read(tmp_path, SMALLEST)
    assert (config.source, config.target) == (str(tmp_path / "binlogs"), "s3://lake/shop")
    assert (config.name, config.server, config.undecoded) == ("ibb", None, "stop")
    assert config.wants(TableName("any", "table"))


def test_the_format_of_tables_is_chosen(tmp_path):
    parquet = SMALLEST.replace("[target]", '[target]\nformat = "parquet"')
    assert read(tmp_path, parquet).format == "parquet"
    assert read(tmp_path, parquet + '[tables]\nhistory = ["a.*"]').history == ("a.*",)
    with pytest.raises(ConfigError, match=r"target\.format: 'orc' is neither"):
        read(tmp_path, parquet.replace("parquet", "orc"))


def test_files_are_put_together_and_removed_where_it_is_said(tmp_path):
    assert read(tmp_path, SMALLEST).compaction is None
    assert read(tmp_path, SMALLEST + "[compaction]").compaction == CompactionConfig(50, 128, None)
    text = SMALLEST + "[compaction]\nsmall_files = 7\nfile_mib = 16\nkeep_hours = 200"
    assert read(tmp_path, text).compaction == CompactionConfig(7, 16, 200)
    with pytest.raises(ConfigError, match=r"compaction\.keep_hours: is at least 168, a week"):
        read(tmp_path, text.replace("200", "167"))
    with pytest.raises(ConfigError, match=r"compaction: is for Delta tables"):
        read(tmp_path, text.replace("[target]", '[target]\nformat = "parquet"'))


def test_everything_can_be_said(tmp_path):
    config = read(
        tmp_path,
        SMALLEST
        + """
        [target.storage]
        AWS_REGION = "eu-1"
        [pipeline]
        name = "shop"
        [tables]
        include = ["shop.*", "crm.a?"]
        exclude = ["shop.tmp_*"]
        history = ["*.orders", "*.tmp_1"]
        undecoded = "keep"
        [tables.keys]
        "shop.log" = ["at", "who"]
        [batch]
        groups = 10
        rows = 20
        mib = 3
        seconds = 30
        [server]
        socket = "/run/mysqld.sock"
        user = "cdc"
        password_file = "secret"
        workers = 4
        chunk_rows = 1000
        """,
    )
    assert config.storage == {"AWS_REGION": "eu-1"}
    wanted = [("shop", "orders"), ("shop", "tmp_1"), ("crm", "ab"), ("crm", "abc")]
    assert [config.wants(TableName(*name)) for name in wanted] == [True, False, True, False]
    assert [config.keeps_history(TableName(*name)) for name in wanted] == [True, *[False] * 3]
    assert config.keys == {TableName("shop", "log"): ("at", "who")}
    assert config.server == ServerConfig(
        "127.0.0.1", 3306, "cdc", "/run/mysqld.sock", str(tmp_path / "secret"), 4, 1000
    )
    assert (config.batch_groups, config.batch_rows, config.batch_seconds) == (10, 20, 30)
    assert config.batch_bytes == 3 << 20
    assert config.name == "shop"


def test_names_in_lower_case_meet_patterns_and_keys_of_any(tmp_path):
    text = '[tables]\ninclude = ["Shop.*"]\nexclude = ["shop.TMP"]\nkeys = {"Shop.Log" = ["At"]}'
    config = read(tmp_path, SMALLEST + text)
    assert config.table_name("Shop", "Log") == TableName("Shop", "Log")
    assert not config.wants(TableName("shop", "log"))
    lower = config.in_lower_case()
    assert lower.wants(lower.table_name("SHOP", "Log"))
    assert not lower.wants(lower.table_name("shop", "Tmp"))
    assert lower.keys == {TableName("shop", "log"): ("At",)}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('[target]\npath = "x"', r"^source\.path: is missing"),
        (SMALLEST + "[tabels]", r"^tabels: .* did you mean tables\?"),
        (SMALLEST + "[tables]\ninclud = []", r"^tables\.includ: .* mean tables\.include\?"),
        (SMALLEST + '[tables]\ninclude = "a.b"', r"^tables\.include: is a list"),
        (SMALLEST + '[tables]\ninclude = ["orders"]', r"^tables\.include: 'orders' is not"),
        (SMALLEST + '[tables]\nundecoded = "drop"', r"^tables\.undecoded: 'drop' is neither"),
        (SMALLEST + '[tables.keys]\norders = ["id"]', r"^tables\.keys\.orders: is not"),
        (SMALLEST + "[batch]\nrows = 0", r"^batch\.rows: is a whole number from 1"),
        (SMALLEST + "[batch]\nrows = true", r"^batch\.rows: is a whole number from 1"),
        (SMALLEST + '[server]\nport = "1"', r"^server\.port: is a whole number"),
        (SMALLEST + '[pipeline]\nname = "a b"', r"^pipeline\.name: 1 to 64"),
        ("pipeline = 5\n" + SMALLEST, r"^pipeline: is a table"),
        (SMALLEST + "[lease]", r"^lease\.url: it must be mariadb://USER@HOST:PORT"),
        (SMALLEST + '[lease]\nurl = "ibb://a@h"', r"^lease\.tls_ca: missing: h is another"),
        (SMALLEST + '[lease]\nurl = "ibb://a:b@h"', r"^lease\.url: .* into a file: lease\.pass"),
        (SMALLEST + '[lease]\nurl = "ibb://a@::1"\nname = "a\'b"', r"^lease\.name: 1 to 200"),
        (SMALLEST + "[lease]\nseconds = 0", r"^lease\.seconds: is a whole number from 1"),
    ],
)
def test_what_is_wrong_is_named(tmp_path, text, words):
    with pytest.raises(ConfigError, match=words):
        read(tmp_path, text)


def test_every_key_is_documented():
    text = (Path(__file__).parents[3] / "docs" / "change-tables.md").read_text()
    example = text.partition("## A pipeline\n")[2].partition("\nA key that is wrong")[0]
    sections = ("source", "target", "pipeline", "tables", "tables.keys", "batch", "server")
    sections += ("compaction", "lease")
    keys = ("name", "path", "storage", "include", "exclude", "undecoded", "groups", "rows")
    keys += ("seconds", "small_files", "file_mib", "keep_hours", "url", "password_env", "tls_ca")
    for key in (*keys, *(item.name for item in fields(ServerConfig))):
        assert re.search(rf"\b{key}\b( =|\])", example), key
    assert all(f"[{section}]" in example for section in sections)


def test_a_lease_has_the_name_of_the_pipeline_and_files_beside_the_configuration(tmp_path):
    text = '[pipeline]\nname = "shop"\n[lease]\nurl = "ibb://cdc@relay.example"\n'
    text += 'password_file = "secret"\ntls_ca = "ca.pem"\n'
    lease = read(tmp_path, SMALLEST + text).lease
    assert (lease.name, lease.seconds) == ("shop", 7 * 24 * 3600)
    assert (str(lease.server), lease.server.user) == ("relay.example:3307", "cdc")
    assert lease.server.password_file == str(tmp_path / "secret")
    assert lease.server.tls.ca == str(tmp_path / "ca.pem")
    more = read(tmp_path, SMALLEST + text + 'name = "other one"\nseconds = 60\n').lease
    assert (more.name, more.seconds) == ("other one", 60)
    assert read(tmp_path, SMALLEST).lease is None


def test_a_file_that_is_not_toml_or_not_there(tmp_path):
    with pytest.raises(PipelineError, match=r"pipeline\.toml: .*line 1"):
        read(tmp_path, "= 5")
    with pytest.raises(PipelineError, match=r"cannot read .*nothing\.toml: No such file"):
        read_config(tmp_path / "nothing.toml")
