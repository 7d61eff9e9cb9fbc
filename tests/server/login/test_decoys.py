"""What users who do not exist seem to have cannot be told from what users have."""

from collections import Counter
from dataclasses import replace

import pytest
from structlog.testing import capture_logs

from ibb.protocol import caching_sha2_password as sha2
from ibb.protocol import ed25519_password as ed25519
from ibb.protocol import native_password as native
from ibb.protocol import parsec_password as parsec
from ibb.protocol.authentication import Channel
from ibb.protocol.handshake import AuthMoreData, AuthSwitchRequest
from ibb.protocol.parsec_password import ParsecPassword
from ibb.protocol.reply import is_err
from ibb.protocol.sha256_crypt import sha256_crypt
from ibb.server.config import Config, ConfigError
from ibb.server.login.accounts import Account, AccountBook, make_account
from ibb.server.server import Server

from ..raw_client import RawClient

METHODS = ("mysql_native_password", "ed25519", "parsec", "caching_sha2_password")
CLIENTS = {each.PLUGIN_NAME: each.client_exchange for each in (native, ed25519, parsec, sha2)}
PRIVATE = Channel(private=True, trusted=True)
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


@pytest.fixture
async def serve_book(store):
    """Return a function that serves accounts."""
    servers = []

    async def start(book, path=""):
        config = Config(listen="127.0.0.1:0", accounts=path)
        servers.append(Server(store, config=config, accounts=book))
        await servers[-1].start()
        return servers[-1]

    yield start
    for server in servers:
        await server.stop()


async def salt_packet(server, user):
    """Return what a user is told of its parsec salt; nobody needs a password for that."""
    async with await RawClient.connect(server.address) as client:
        switch = AuthSwitchRequest.parse(await client.log_in(user, "", plugin="other"))
        assert switch.plugin == "parsec"
        await client.send(b"", client.seq + 1)
        return await client.packet()


async def test_salts_tell_nothing_of_who_exists(serve_book):
    known = [slow_parsec(f"known{number}", number % 2 * 2) for number in range(6)]
    server = await serve_book(AccountBook(known))
    guesses = GUESSES[:24]
    packets = {}
    for _ in range(2):
        for user in (*guesses, *(account.user for account in known)):
            packet = await salt_packet(server, user)
            assert packets.setdefault(user, packet) == packet
    assert len({packet[3:] for packet in packets.values()}) == len(packets)
    assert {len(packet) for packet in packets.values()} == {1 + 2 + 18}
    heads = Counter(packets[user][:3] for user in guesses)
    assert set(heads) == {packets[account.user][:3] for account in known}
    assert len(heads) == 2


async def test_an_account_of_another_network_shows_what_it_shows_there(serve_book):
    far, near = slow_parsec("far", 2), slow_parsec("near", 1)
    far = replace(far, host="10.%")
    book = AccountBook([far, near])
    assert book.find("far", ["10.0.0.1"]) is far
    assert await salt_packet(await serve_book(book), "far") == b"\x01P\x02" + b"far".ljust(18, b"-")


async def refusal(server, password):
    """Return kinds and lengths of the packets behind the greeting, up to the error."""
    async with await RawClient.connect(server.address) as client:
        await client.read_greeting()
        await client.start_tls()
        packets = [await client.log_in("u", "", plugin="other")]
        while not is_err(packets[-1]):
            switch = AuthSwitchRequest.parse(packets[-1])
            if switch is not None:
                exchange = CLIENTS[switch.plugin](password, switch.data, PRIVATE)
                answer = next(exchange)
            else:
                answer = exchange.send(AuthMoreData.parse(packets[-1]).data)
            await client.send(answer, client.seq + 1)
            packets.append(await client.packet())
        return [(packet[:1], len(packet)) for packet in packets]


@pytest.mark.parametrize("method", METHODS)
async def test_the_right_password_tells_nothing_from_another_network(serve_book, method):
    """Nor where it was right elsewhere and is remembered: both passwords get the same packets."""
    account = make_account("u", "10.%", "right", methods=[method, "ed25519"])
    server = await serve_book(AccountBook([account]))
    server.methods["caching_sha2_password"]._remember(account.auth[0][1], b"right")
    right, wrong = [await refusal(server, password) for password in ("right", "wrong")]
    assert right == wrong
    assert len(right) > len(account.auth)


def test_decoys_are_the_same_behind_a_restart(book, tmp_path):
    path = str(tmp_path / "accounts.toml")
    book.save(path)
    again = AccountBook.load(path)
    assert [again.decoy(user) for user in GUESSES] == [book.decoy(user) for user in GUESSES]
    other = AccountBook(book)
    assert [other.decoy(user) for user in GUESSES] != [book.decoy(user) for user in GUESSES]


async def test_a_file_without_a_secret_is_served_with_one_that_reloads_keep(
    book, serve_book, tmp_path
):
    path = tmp_path / "accounts.toml"
    book.save(str(path))
    written = path.read_text().partition("\n")[2]
    path.write_text(written)
    path.chmod(0o400)
    with capture_logs() as lines:
        server = await serve_book(AccountBook.load(str(path)), str(path))
        before = [server.accounts.decoy(user) for user in GUESSES]
        server.reload(AccountBook.load(str(path)))
        assert [server.accounts.decoy(user) for user in GUESSES] == before
        AccountBook.load(str(path)).save(str(path))
        server.reload(AccountBook.load(str(path)))
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
