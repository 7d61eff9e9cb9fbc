"""Settings: names, sizes, bounds, and the file."""

import pytest

from ibb.server.config import (
    Config,
    ConfigError,
    derived_server_id,
    parse_address,
    parse_size,
)
from ibb.server.config_file import config_from, read_config_file


@pytest.mark.parametrize(
    ("text", "size"),
    [("0", 0), ("512", 512), ("16k", 16384), ("1M", 1 << 20), ("2G", 2 << 30), (" 1T ", 1 << 40)],
)
def test_sizes_are_written_as_mariadb_writes_them(text, size):
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "M", "1MB", "-1", "1.5M", "0x10", "\u0661", "9" * 30])
def test_what_is_no_size_is_refused(text):
    with pytest.raises(ConfigError):
        parse_size(text)


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("127.0.0.1:3310", ("127.0.0.1", 3310)),
        ("db.example", ("db.example", 3307)),
        ("[::1]:0", ("::1", 0)),
        ("[::1]", ("::1", 3307)),
    ],
)
def test_addresses(text, address):
    assert parse_address(text) == address


@pytest.mark.parametrize(
    "text", ["", ":3306", "host:port", "host:70000", "::1:5", "host:", "3307", "3307:"]
)
def test_what_is_no_address_is_refused(text):
    with pytest.raises(ConfigError):
        parse_address(text)


def test_a_file_of_settings_is_checked_like_the_command_line(tmp_path):
    path = tmp_path / "ibb.toml"
    path.write_text(
        'max_binlog_size = "1M"\nserver_id = 5\nconnect_timeout = 3\nread_only = true\n'
    )
    config = config_from(read_config_file(str(path)))
    assert (config.max_binlog_size, config.server_id, config.connect_timeout) == (1 << 20, 5, 3.0)
    assert config.read_only


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"max_binlog_sise": 1}, "unknown setting: max_binlog_sise"),
        ({"server_id": "5"}, "server_id must be a whole number"),
        ({"server_id": 1 << 32}, "server_id must be"),
        ({"read_only": 1}, "read_only must be true or false"),
        ({"connect_timeout": 0}, "connect_timeout must be above 0"),
        ({"server_version": ""}, "server_version"),
        ({"server_version": "x" * 50}, "server_version"),
        ({"follow_unsynced": True}, "follow_unsynced needs read_only"),
        ({"read_only": True, "upstream": "mariadb://u@h"}, "exclude"),
        ({"log_format": "xml"}, "log_format must be one of text, json"),
        ({"listen": "nowhere:"}, "not an address"),
        ({"master_heartbeat_period": 50.0}, "below slave_net_timeout"),
        ({"max_connections": 0}, "max_connections"),
        ({"dump_threads": 100}, "dump_threads"),
    ],
)
def test_wrong_settings_are_refused_by_name(values, reason):
    with pytest.raises(ConfigError, match=reason):
        config_from(values)


def test_a_password_in_the_file_needs_a_file_that_only_its_owner_reads(tmp_path):
    path = tmp_path / "ibb.toml"
    path.write_text('upstream_password = "x"')
    path.chmod(0o640)
    with pytest.raises(ConfigError, match="0600"):
        read_config_file(str(path))
    path.chmod(0o600)
    assert read_config_file(str(path)) == {"upstream_password": "x"}


@pytest.mark.parametrize("content", [b"= 5", b"\xff\xfe", b"x" * ((1 << 20) + 1)])
def test_a_file_that_is_none_is_refused(tmp_path, content):
    path = tmp_path / "ibb.toml"
    path.write_bytes(content)
    with pytest.raises(ConfigError, match=r"ibb\.toml"):
        read_config_file(str(path))


def test_a_missing_file_is_refused():
    with pytest.raises(ConfigError, match="cannot read"):
        read_config_file("/nowhere/ibb.toml")


def test_the_derived_server_id_is_the_same_at_every_start_and_high():
    one = derived_server_id("host", "/var/lib/ibb")
    assert one == derived_server_id("host", "/var/lib/ibb")
    assert one != derived_server_id("other", "/var/lib/ibb")
    assert one != derived_server_id("host", "/srv")
    assert 1 << 31 <= one < 1 << 32


def test_the_defaults_are_those_of_the_documentation():
    config = Config()
    assert (config.listen, config.server_version) == ("127.0.0.1:3307", "10.11.99-MariaDB-ibb")
    assert (config.page_size, config.max_binlog_size) == (16384, 1 << 30)
