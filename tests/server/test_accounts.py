"""The accounts file, and who matches which account."""

import stat

import pytest

from ibb.server.accounts import AccountBook, made_up_account, make_account
from ibb.server.config import ConfigError

HASH = "*14E65567ABDB5135D0CFD9A70B3032C179A49EE7"  # of "secret", by MariaDB's PASSWORD()


def test_a_saved_book_is_read_again_and_holds_only_hashes(tmp_path):
    path = tmp_path / "accounts.toml"
    book = AccountBook([make_account('re"p\\l', "10.0._.%", "secret", ["replication slave"])])
    book.save(str(path))
    text = path.read_text()
    assert HASH in text
    assert "secret" not in text
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    (account,) = AccountBook.load(str(path))
    assert account == next(iter(book))
    assert account.may("REPLICATION SLAVE")
    assert not account.may("SUPER")
    assert [entry.name for entry in tmp_path.iterdir()] == ["accounts.toml"]


def test_a_failed_save_leaves_the_old_file(tmp_path):
    path = tmp_path / "accounts.toml"
    AccountBook([make_account("old", "%", "secret", [])]).save(str(path))
    book = AccountBook()
    book._accounts = {("x", "%"): None}
    with pytest.raises(AttributeError):
        book.save(str(path))
    assert [account.user for account in AccountBook.load(str(path))] == ["old"]
    assert [entry.name for entry in tmp_path.iterdir()] == ["accounts.toml"]


def test_the_most_specific_host_wins():
    book = AccountBook(
        make_account("u", host, host, []) for host in ("%", "10.%", "10.0.0.5", "localhost")
    )
    find = {
        "10.0.0.5": "10.0.0.5",
        "10.9.9.9": "10.%",
        "8.8.8.8": "%",
    }
    for address, host in find.items():
        assert book.find("u", [address]).host == host
    assert book.find("u", ["localhost", "127.0.0.1"]).host == "localhost"
    assert book.find("v", ["10.0.0.5"]) is None
    assert AccountBook([make_account("u", "10.%", "x", [])]).find("u", ["11.0.0.1"]) is None


def test_privileges_have_mariadbs_names_and_aliases():
    account = make_account("u", "%", "x", ["replication  replica, REPLICATION CLIENT", "reload"])
    assert account.grants == {"REPLICATION SLAVE", "BINLOG MONITOR", "RELOAD"}
    assert make_account("u", "%", "x", ["all"]).may("SUPER")
    with pytest.raises(ConfigError, match="unknown privilege: 'FLY'"):
        make_account("u", "%", "x", ["FLY"])


@pytest.mark.parametrize(
    ("user", "host", "password"),
    [
        ("", "%", "x"),
        ("u", "", "x"),
        ("u", "%", ""),
        ("u\n", "%", "x"),
        ("u" * 129, "%", "x"),
        ("u", "%", "x" * 1025),
    ],
)
def test_impossible_accounts_are_refused(user, host, password):
    with pytest.raises(ConfigError):
        make_account(user, host, password, [])


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[[account]]\nuser = 5", "user and host must be strings"),
        (f'[[account]]\nuser = "u"\npassword = "{HASH}"\nshoe = 1', "are known"),
        ('[[account]]\nuser = "u"\npassword = "secret"', "40 hexadecimal digits"),
        (f'[[account]]\nuser = "u"\npassword = "{HASH}"\ngrants = "x"', "list of strings"),
        ("password = 5", "only \\[\\[account\\]\\]"),
        ("= nonsense", "accounts.toml"),
    ],
)
def test_a_wrong_file_is_refused_with_its_place(tmp_path, text, reason):
    path = tmp_path / "accounts.toml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=reason):
        AccountBook.load(str(path))


def test_a_made_up_account_may_replicate_from_here_alone():
    account, password = made_up_account("repl")
    assert account.may("REPLICATION SLAVE")
    assert not account.matches("10.0.0.1")
    assert made_up_account("repl")[1] != password
    assert len(password) >= 20
