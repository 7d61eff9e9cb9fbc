"""The accounts file, and who matches which account."""

import stat
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from structlog.testing import capture_logs

from ibb.server.config import Config, ConfigError
from ibb.server.login.accounts import Account, AccountBook, made_up_account, make_account, shut_out
from ibb.server.login.host_pattern import vagueness

HASH = "*14E65567ABDB5135D0CFD9A70B3032C179A49EE7"  # of "secret", by MariaDB's PASSWORD()
AUTH = f'auth.mysql_native_password = "{HASH}"'


def test_a_saved_book_is_read_again_and_holds_only_hashes(tmp_path):
    path = tmp_path / "accounts.toml"
    book = AccountBook([make_account('re"p\\l', "10.0._.%", "secret", ["replication slave"])])
    book.save(str(path))
    text = path.read_text()
    assert HASH in text
    assert "secret" not in text.replace("decoy_secret", "")
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
    book._accounts = {"x": {"%": None}}
    with pytest.raises(AttributeError):
        book.save(str(path))
    assert [account.user for account in AccountBook.load(str(path))] == ["old"]
    assert [entry.name for entry in tmp_path.iterdir()] == ["accounts.toml"]


def test_a_change_begins_with_what_the_one_before_it_has_written(tmp_path):
    path = str(tmp_path / "accounts.toml")
    together = threading.Barrier(8)

    def add(number):
        together.wait()
        with AccountBook.changing(path) as book:
            book.add(make_account(f"user{number}", "%", "secret"))

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(add, range(8)))
    book = AccountBook.load(path)
    assert {account.user for account in book} == {f"user{number}" for number in range(8)}


def test_a_change_that_fails_leaves_the_file(tmp_path):
    path = tmp_path / "accounts.toml"
    with pytest.raises(ConfigError), AccountBook.changing(str(path)) as book:
        book.add(make_account("u", "%", ""))
    assert not path.exists()


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


def test_hosts_are_patterns_or_networks_as_mariadb_has_them():
    book = AccountBook(
        make_account("u", host, host, [])
        for host in ("%", "10.%", "10.1.0.0/255.255.0.0", "10.1.2.0/24", "fd00::/8", "10.1.2._")
    )
    find = {
        "10.1.2.33": "10.1.2.0/24",
        "10.1.3.3": "10.1.0.0/255.255.0.0",
        "10.2.3.3": "10.%",
        "fd12::1": "fd00::/8",
        "fe80::1": "%",
    }
    for address, host in find.items():
        assert book.find("u", [address]).host == host
    assert AccountBook([make_account("u", "10.1.2._", "x")]).find("u", ["10.1.2.33"]) is None
    assert AccountBook([make_account("u", "10.0.0.0/8", "x")]).find("u", ["localhost"]) is None


@pytest.mark.parametrize(
    ("host", "reason"),
    [
        ("replica1.example.com", "not an address: 'replica1.example.com' .host names are not"),
        ("10.0.0", "not an address"),
        ("127.000.000.001", "not an address"),
        ("2001:db8:0:0::1", "write 2001:db8::1"),
        ("::ffff:10.0.0.1", "write 10.0.0.1"),
        ("::ffff:a00:1", "write 10.0.0.1"),
        ("%.example.com", "no client's address is like '%.example.com'"),
        ("relay_", "no client's address is like"),
        ("LocalHost", "in lower case: write localhost"),
        ("10.0.0.1/8", "not a network"),
    ],
)
def test_hosts_that_nobody_can_come_from_are_refused(host, reason):
    with pytest.raises(ConfigError, match=reason):
        make_account("u", host, "x")


def test_by_unix_socket_alone_one_comes_from_localhost():
    for host in ("%", "localhost", "l%"):
        make_account("u", host, "", methods=["unix_socket"])
    for host in ("10.%", "10.0.0.0/8", "127.0.0.1"):
        with pytest.raises(ConfigError, match="from localhost only"):
            make_account("u", host, "", methods=["unix_socket"])
        make_account("u", host, "x", methods=["unix_socket", "ed25519"])


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"ssl_ca": "ca.pem"}, []),
        ({}, ["1 that require X509, without ssl_ca"]),
        (
            {"skip_ssl": True, "ssl_ca": "ca.pem"},
            ["2 that require SSL, with skip_ssl", "1 that require X509, with skip_ssl"],
        ),
    ],
)
def test_accounts_are_named_that_settings_shut_out(settings, said):
    requirements = ["", "SSL", "SSL", "X509"]
    book = AccountBook(
        make_account(f"u{number}", "%", "x", require=requirement)
        for number, requirement in enumerate(requirements)
    )
    assert list(shut_out(book, Config(**settings))) == said


async def test_accounts_that_settings_shut_out_are_in_the_log(serve, store, accounts):
    accounts.add(make_account("shown", "%", "x", require="X509"))
    with capture_logs() as lines:
        server = await serve(store)
        server.reload()
    said = [line["accounts"] for line in lines if line["event"] == "accounts_shut_out"]
    assert said == ["1 that require X509, without ssl_ca"] * 2


def test_the_pattern_counts_that_fewest_hosts_match():
    inward = (
        *("10.0.0.1", "10.0.0.0/30", "10.0.0.0/8", "_0.0.0.1", "10.0.0._", "10.0._._"),
        *("10.0.0.%", "%0.0.1", "10.0.%", "%.0.%", "1%1", "10%", "_%", "%"),
    )
    assert sorted(inward, key=vagueness) == list(inward)


def test_a_book_keeps_every_method_requirement_and_limit(tmp_path):
    path = str(tmp_path / "accounts.toml")
    names = ("ed25519", "parsec", "caching_sha2_password", "mysql_native_password", "unix_socket")
    account = make_account("u", "%", "x", methods=names, require="X509", max_connections=3)
    odd = "$A$005$" + '\x01\x7f"\\\x1f' + "a" * 15 + "b" * 43  # a salt as MySQL may make it
    other = Account("v", "%", (("caching_sha2_password", odd),))
    AccountBook([account, other]).save(path)
    assert list(AccountBook.load(path)) == [account, other]
    assert [name for name, _ in account.auth] == list(names)
    assert dict(account.auth)["unix_socket"] == "u"


def test_super_stands_for_what_it_was_cut_into():
    account = make_account("u", "%", "x", ["SUPER"])
    for privilege in ("CONNECTION ADMIN", "BINLOG ADMIN", "REPLICATION MASTER ADMIN", "SUPER"):
        assert account.may(privilege)
    assert not account.may("REPLICATION SLAVE")
    assert make_account("u", "%", "x", ["usage"]).grants == frozenset()


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
        ("u", "%", "a\0b"),
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
        (f'[[account]]\nuser = "u"\n{AUTH}\nshoe = 1', "are known"),
        ('[[account]]\nuser = "u"\nauth.mysql_native_password = "secret"', "40 hexadecimal"),
        ('[[account]]\nuser = "u"\nauth.ed25519 = "secret"', "43 characters"),
        ('[[account]]\nuser = "u"\nauth.parsec = "secret"', "parsec string"),
        ('[[account]]\nuser = "u"\nauth.caching_sha2_password = "secret"', "caching_sha2"),
        ('[[account]]\nuser = "u"\nauth.telepathy = "secret"', "unknown method: 'telepathy'"),
        ('[[account]]\nuser = "u"', "needs a way to log in"),
        ('[[account]]\nuser = "u"\nauth = "secret"', "table of strings"),
        (f'[[account]]\nuser = "u"\n{AUTH}\ngrants = "x"', "list of strings"),
        (f'[[account]]\nuser = "u"\n{AUTH}\nrequire = "magic"', "SSL or X509"),
        (f'[[account]]\nuser = "u"\n{AUTH}\nmax_connections = -1', "0 to 100000"),
        (f'[[account]]\nuser = "u"\n{AUTH}\nhost = "10.0.0.1/8"', "not a network"),
        (f'[[account]]\nuser = "u"\n{AUTH}\n' * 2, "account 2: its user and host"),
        ("password = 5", "only decoy_secret and"),
        ("= nonsense", "accounts.toml"),
    ],
)
def test_a_wrong_file_is_refused_with_its_place(tmp_path, text, reason):
    path = tmp_path / "accounts.toml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=reason) as caught:
        AccountBook.load(str(path))
    assert "secret" not in str(caught.value).replace("decoy_secret", "")
    assert HASH not in str(caught.value)


def test_a_made_up_account_may_replicate_from_here_alone():
    account, password = made_up_account("repl")
    assert account.may("REPLICATION SLAVE")
    assert not account.matches("10.0.0.1")
    assert made_up_account("repl")[1] != password
    assert len(password) >= 20
