"""What users who do not exist seem to have cannot be told from what users have."""

from collections import Counter

import pytest
from structlog.testing import capture_logs

from ibb.protocol.handshake import AuthSwitchRequest
from ibb.protocol.parsec_password import ParsecPassword
from ibb.protocol.sha256_crypt import sha256_crypt
from ibb.server.accounts import Account, AccountBook, make_account
from ibb.server.config import Config, ConfigError
from ibb.server.server import Server

from .raw_client import RawClient

METHODS = ("mysql_native_password", "ed25519", "parsec", "caching_sha2_password")
GUESSES = [f"guess{number}" for number in range(200)]


def slow_parsec(user, iterations_log):
    """Return an account made elsewhere, with another number of iterations."""
    text = ParsecPassword().make("right", user.encode().ljust(18, b"-"))
    return Account(user, "%", (("parsec", f"P{iterations_log}{text[2:]}"),))


def slow_sha2(user, thousands):
    salt = b"abcdefghijklmnopqrst"
    hashed = sha256_crypt(b"right", salt, thousands * 1000).decode()
    text = f"$A${thousands:03X}${salt.decode()}{hashed}"
    return Account(user, "%", (("caching_sha2_password", text),))


@pytest.fixture
def book():
    """An account a method, and two of one."""
    accounts = [make_account(name, "%", "x", methods=[name]) for name in METHODS]
    both = make_account("both", "%", "x", methods=["ed25519", "parsec"])
    return AccountBook([*accounts, both])


def methods(book):
    return {user: [name for name, _ in book.decoy(user)] for user in GUESSES}


async def salt_packet(server, user):
    """Return what a user is told of its parsec salt; nobody needs a password for that."""
    async with await RawClient.connect(server.address) as client:
        switch = AuthSwitchRequest.parse(await client.log_in(user, "", plugin="other"))
        assert switch.plugin == "parsec"
        await client.send(b"", client.seq + 1)
        return await client.packet()


async def test_salts_tell_nothing_of_who_exists(store):
    known = [slow_parsec(f"known{number}", number % 2 * 2) for number in range(6)]
    config = Config(listen="127.0.0.1:0")
    server = Server(store, config=config, accounts=AccountBook(known))
    await server.start()
    guesses = GUESSES[:24]
    packets = {}
    for _ in range(2):
        for user in (*guesses, *(account.user for account in known)):
            packet = await salt_packet(server, user)
            assert packets.setdefault(user, packet) == packet
    await server.stop()
    assert len({packet[3:] for packet in packets.values()}) == len(packets)
    assert {len(packet) for packet in packets.values()} == {1 + 2 + 18}
    heads = Counter(packets[user][:3] for user in guesses)
    assert set(heads) == {packets[account.user][:3] for account in known}
    assert len(heads) == 2


def test_decoys_are_the_same_behind_a_restart(book, tmp_path):
    path = str(tmp_path / "accounts.toml")
    book.save(path)
    again = AccountBook.load(path)
    assert [again.decoy(user) for user in GUESSES] == [book.decoy(user) for user in GUESSES]
    other = AccountBook(book)
    assert [other.decoy(user) for user in GUESSES] != [book.decoy(user) for user in GUESSES]


async def test_a_file_without_a_secret_is_served_with_one_that_reloads_keep(book, store, tmp_path):
    path = tmp_path / "accounts.toml"
    book.save(str(path))
    written = path.read_text().partition("\n")[2]
    path.write_text(written)
    path.chmod(0o400)
    config = Config(listen="127.0.0.1:0", accounts=str(path))
    server = Server(store, config=config, accounts=AccountBook.load(str(path)))
    before = [server.accounts.decoy(user) for user in GUESSES]
    with capture_logs() as lines:
        await server.start()
        server.reload(AccountBook.load(str(path)))
        assert [server.accounts.decoy(user) for user in GUESSES] == before
        AccountBook.load(str(path)).save(str(path))
        server.reload(AccountBook.load(str(path)))
    await server.stop()
    said = [line for line in lines if line["event"] == "decoy_secret_missing"]
    assert len(said) == 2
    assert path.read_text().partition("\n")[2] == written
    assert server.accounts.decoy_secret == AccountBook.load(str(path)).decoy_secret


def test_a_secret_that_no_file_keeps_is_no_ones_to_guess(book):
    again = AccountBook(book)
    assert again.decoy_secret != book.decoy_secret


@pytest.mark.parametrize("secret", ["5", '"5"', f'"{"x" * 64}"'])
def test_a_secret_of_another_form_is_refused(tmp_path, secret):
    path = tmp_path / "accounts.toml"
    path.write_text(f"decoy_secret = {secret}\n")
    with pytest.raises(ConfigError, match="64 hexadecimal digits"):
        AccountBook.load(str(path))


def test_each_set_of_methods_gets_its_share(book):
    shares = Counter(map(tuple, methods(book).values()))
    assert len(shares) == len(METHODS) + 1
    assert min(shares.values()) > 15  # of 40


def test_one_more_account_moves_nobody_but_to_methods_that_are_new(book):
    before = methods(book)
    book.add(make_account("new", "10.%", "x", methods=["ed25519"]))
    assert methods(book) == before
    book.remove("new", "10.%")
    assert methods(book) == before
    book.add(make_account("new", "%", "x", methods=["parsec", "ed25519"]))
    after = methods(book)
    moved = [user for user in GUESSES if after[user] != before[user]]
    assert 10 < len(moved) < 60  # of 200, a sixth
    assert all(after[user] == ["parsec", "ed25519"] for user in moved)
    book.add(make_account("new", "%", "y", methods=["caching_sha2_password"]))
    assert methods(book) == before


def test_salts_stay_when_accounts_change():
    book = AccountBook([make_account("u", "%", "x", methods=["parsec"])])
    before = {user: book.decoy(user) for user in GUESSES}
    book.add(make_account("v", "%", "x", methods=["parsec"]))
    book.add(make_account("u", "%", "other", methods=["parsec"]))
    assert {user: book.decoy(user) for user in GUESSES} == before


def test_decoys_cost_what_accounts_cost():
    book = AccountBook([slow_sha2("a", 5), slow_sha2("b", 40), slow_sha2("c", 40)])
    rounds = Counter(text[:7] for user in GUESSES for _, text in book.decoy(user))
    assert set(rounds) == {"$A$005$", "$A$028$"}


def test_a_server_without_accounts_asks_for_native_passwords():
    ((name, _),) = AccountBook().decoy("anybody")
    assert name == "mysql_native_password"


def test_a_name_that_is_none_is_looked_for_as_long(book, monkeypatch):
    looked_at = []
    monkeypatch.setattr(Account, "matches", lambda _, *hosts: looked_at.append(hosts) or True)
    assert book.find("ed25519", ["10.0.0.1"]).user == "ed25519"
    assert book.find("guess", ["10.0.0.1"]) is None
    assert looked_at == [("10.0.0.1",)] * 2
