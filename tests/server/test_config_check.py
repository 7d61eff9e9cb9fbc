"""`check_config_file`: everything that is wrong is told at once, at its line, with what to do."""

import pytest

from ibb.server import config_check
from ibb.server.config import ConfigError
from ibb.server.config_check import check_config_file
from ibb.server.login.accounts import AccountBook, make_account


@pytest.fixture
def check(tmp_path):
    """Return a function that checks a text, and returns its findings as `LINE: text`."""

    def run(text, mode=0o600):
        path = tmp_path / "ibb.toml"
        path.write_text(text)
        path.chmod(mode)
        return [
            f"{line}: {'advice: ' * is_advice}{text}"
            for line, text, is_advice in check_config_file(str(path))
        ]

    return run


@pytest.fixture
def accounts(tmp_path):
    path = tmp_path / "accounts.toml"
    AccountBook([make_account("repl", "%", "secret")]).save(str(path))
    path.chmod(0o640)
    return path


def test_nothing_is_found_in_a_file_that_is_right(check, accounts, tmp_path):
    text = f'listen = "0.0.0.0:3307"\naccounts = "{accounts}"\nmax_binlog_size = "64M"\n'
    before = sorted(tmp_path.iterdir())
    assert check(text + f'ssl_state = "{tmp_path / "tls"}"\nadmin_listen = "[::]:8307"\n') == []
    assert set(tmp_path.iterdir()) - set(before) == {tmp_path / "ibb.toml"}  # no certificate


def test_all_is_told_at_once_by_line(check):
    assert check(
        "# settings\n"
        'max_binlog_sise = "1G"\n'
        'server_id = "5"\n'
        "max_connections = 0\n"
        "read_only = true\n"
        'upstream = "mariadb://u@h"\n'
        "dump_threads = 100\n"
        "[listen]\n"
        "port = 5\n"
    ) == [
        "1: listen must be text in quotes, not {'port': 5}",
        "2: unknown setting: max_binlog_sise (did you mean max_binlog_size?)",
        "3: server_id must be a whole number, not '5'",
        "4: max_connections must be 1 to 100000",
        "6: upstream and read_only exclude each other",
        "7: dump_threads must be 1 to 64",
    ]


@pytest.mark.parametrize(
    ("text", "finding"),
    [
        ("listen = \n", "1: not TOML"),
        ("\n\nlisten\n", "3: not TOML"),
        ('\nlisten = "0.0.0.0:3307"', "2: accounts: without accounts only loopback"),
        ('page_size = 1000\nserver_version = ""', "2: server_version"),
        ("page_size = 1000", "1: page_size"),
        ("metrics_open = true", "1: advice: metrics_open does nothing without admin_listen"),
        ('admin_listen = "0.0.0.0:1"', "1: admin_listen: passwords would go over 0.0.0.0"),
        ('upstream = "http://h"', "1: "),
        ('\nssl_ca = "/nowhere"', "2: ssl_ca: cannot read /nowhere: No such file"),
        ('\nupstream_ssl_fp = "xy"', "2: upstream_ssl_fp"),
        ("log_format = 'xml'", "1: log_format must be one of text, json"),
        ('accounts = "a\\u0000b"', "1: accounts must not hold a character NUL"),
        (f'listen = "127.0.0.1:{"9" * 5000}"', "1: listen: not an address: "),
        (f'admin_listen = "127.0.0.1:{"9" * 5000}"', "1: admin_listen: not an address: "),
        (f'upstream = "mariadb://u@h:{"9" * 5000}"', "1: "),
        ('\nsocket = "/nowhere/ibb.sock"', "2: advice: socket: there is no folder /nowhere"),
        ('\nssl_state = "/dev/null/tls"', "2: ssl_state: cannot make /dev/null/tls: /dev/null"),
        (
            'listen = "127.0.0.1:5"\nadmin_listen = "0.0.0.0:5"\nskip_ssl = true',
            "2: admin_listen and listen are the same address, or one has both",
        ),
    ],
)
def test_what_is_wrong_is_named(check, text, finding):
    found = check(text)
    assert any(line.startswith(finding) for line in found), found


@pytest.mark.parametrize("name", ["ssl_key", "upstream_password_file", "accounts"])
def test_files_with_secrets_are_to_be_closed_to_others(check, accounts, name):
    accounts.chmod(0o644)
    (found,) = [line for line in check(f'{name} = "{accounts}"') if "open to others" in line]
    assert found.startswith(f"1: advice: {name}: ")
    assert found.endswith("is open to others (mode 0644): chmod 640 it")
    accounts.chmod(0o640)
    assert not [line for line in check(f'{name} = "{accounts}"') if "open to others" in line]


def test_a_password_in_the_file_needs_a_file_of_ones_own(check):
    text = 'upstream = "mariadb://u@h"\nupstream_password = "hidden"\n'
    assert check(text) == []
    (finding,) = check(text, 0o644)
    assert finding.startswith("2: a password stands here: chmod 600")
    assert "hidden" not in str(check('upstream_password = ["hidden"]'))


def test_accounts_are_looked_at(check, accounts):
    AccountBook([make_account("x", "%", "secret", require="X509")]).save(str(accounts))
    (finding,) = check(f'\naccounts = "{accounts}"')
    assert (
        finding == "2: advice: accounts: nobody can log in to 1 that require X509, without ssl_ca"
    )
    accounts.write_text("[[account]]\nuser = 5\n")
    (finding,) = check(f'accounts = "{accounts}"')
    assert "account 1: user and host must be strings" in finding


def test_packages_that_are_missing_are_named(check, monkeypatch):
    monkeypatch.setattr(config_check, "find_spec", lambda name: None if name == "uvicorn" else 1)
    (finding,) = check('admin_listen = "127.0.0.1:1"')
    assert finding == "1: admin_listen needs uvicorn: in a checkout, pip install '.[web]'"


def test_what_cannot_be_read_is_no_finding(tmp_path):
    with pytest.raises(ConfigError, match="cannot read"):
        check_config_file(str(tmp_path / "missing"))
