"""Every method of login: both sides against each other, and against what real programs said."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ibb.protocol import caching_sha2_password as sha2
from ibb.protocol import ed25519_password as ed25519
from ibb.protocol import native_password as native
from ibb.protocol import parsec_password as parsec
from ibb.protocol.authentication import (
    CannotAuthenticate,
    Channel,
    Verdict,
    certificate_proof,
    proves_certificate,
)
from ibb.protocol.errors import FormatError
from ibb.protocol.sha256_crypt import sha256_crypt
from ibb.protocol.socket_peer import SocketPeer

PRIVATE = Channel(private=True, trusted=True)
CHALLENGE = bytes(range(33, 65))
SALT = bytes(range(64))

SERVERS = {
    "native": (native.NativePassword(), native.client_exchange),
    "ed25519": (ed25519.Ed25519Password(), ed25519.client_exchange),
    "parsec": (parsec.ParsecPassword(), parsec.client_exchange),
    "sha2": (sha2.CachingSha2Password(), sha2.client_exchange),
}
both_sides = pytest.mark.parametrize(("server", "client"), SERVERS.values(), ids=list(SERVERS))


def kept(server, password):
    return server.make(password, SALT[: server.salt_bytes])


def meet(server, client, text, password, channel=PRIVATE):
    """Let both sides talk; return the verdict and what was said."""
    challenge = CHALLENGE[: server.challenge_bytes]
    said = []
    answering = None
    exchange = server.exchange(text, challenge, channel)
    step = next(exchange)
    while True:
        said.append(step)
        if answering is None:
            answering = client(password, step, channel)
            answer = next(answering)
        else:
            answer = answering.send(step)
        said.append(answer)
        try:
            step = exchange.send(answer)
        except StopIteration as end:
            return end.value, said


@both_sides
def test_the_right_password_is_proven_and_a_wrong_one_is_not(server, client):
    text = kept(server, "s3cret å")
    server.check_text(text)
    assert meet(server, client, text, "s3cret å")[0].proven
    assert not meet(server, client, text, "s3cret a")[0].proven
    decoy = server.decoy(text, bytes(32))
    assert not meet(server, client, decoy, "s3cret å")[0].proven
    server.check_text(decoy)


@both_sides
def test_passwords_do_not_appear_in_what_is_kept(server, client):
    assert "s3cret" not in kept(server, "s3cret")


@both_sides
@given(answers=st.lists(st.binary(max_size=120), min_size=3, max_size=3))
def test_no_answer_breaks_or_convinces_a_server(server, client, answers):
    exchange = server.exchange(kept(server, "s3cret"), CHALLENGE[: server.challenge_bytes], PRIVATE)
    next(exchange)
    with pytest.raises(StopIteration) as ended:
        for answer in answers:
            exchange.send(answer)
    assert ended.value.value == Verdict(proven=False)


@both_sides
@given(text=st.text(max_size=80))
def test_what_is_no_authentication_string_is_refused(server, client, text):
    with pytest.raises(ValueError, match="needed"):
        server.check_text(text)


def test_ed25519_makes_the_key_that_mariadb_keeps():
    # the example of MariaDB's documentation
    assert kept(SERVERS["ed25519"][0], "secret") == "ZIgUREUg5PVgQ6LskhXmO+eZLS0nC8be6HPjYWR4YJY"


def test_sha256_crypt_makes_known_hashes():
    assert sha256_crypt(b"Hello world!", b"saltstring") == (
        b"5B8vYYiY.CVt1RlTTf8KbXBH3hsxY/GNooZaBBGWEc5"  # what crypt(3) makes of $5$saltstring
    )
    long = sha256_crypt(b"p" * 100, b"0123456789abcdef", 1000)
    assert long == b"7Q527KYcf/iw5JJP8d2JHHQr/YK8SfN0spM0EcIfKW5"
    salt = bytes.fromhex("F9CC98CE08892924F50A213B6BC571A2C11778C5")
    # hashcat's published example of a MySQL hash
    assert sha256_crypt(b"hashcat", salt) == b"bTy95Y99eAME1dwEkHOA1ndHGBWz.1bxSSRkuTXFGV/"


def test_parsec_accepts_nothing_but_an_empty_first_answer():
    server, client = SERVERS["parsec"]
    exchange = server.exchange(kept(server, "x"), CHALLENGE, PRIVATE)
    answering = client("x", next(exchange), PRIVATE)
    next(answering)
    salt = exchange.send(b"!")
    with pytest.raises(StopIteration) as ended:
        exchange.send(answering.send(salt))
    assert not ended.value.value.proven


@pytest.mark.parametrize(
    ("packet", "kind"),
    [
        (b"", FormatError),
        (b"Q\0" + SALT[:18], FormatError),
        (b"P\4" + SALT[:18], CannotAuthenticate),
    ],
)
def test_a_parsec_client_takes_no_other_salt(packet, kind):
    answering = parsec.client_exchange("x", CHALLENGE, PRIVATE)
    next(answering)
    with pytest.raises(kind):
        answering.send(packet)


def test_sha2_asks_for_the_password_once_and_then_knows_it():
    server, client = sha2.CachingSha2Password(), sha2.client_exchange
    text = kept(server, "s3cret")
    verdict, said = meet(server, client, text, "s3cret")
    assert verdict == Verdict(proven=True)
    assert said[2:] == [b"\x04", b"s3cret\0"]
    verdict, said = meet(server, client, text, "s3cret")
    assert verdict == Verdict(proven=True, last_word=b"\x03")
    assert len(said) == 2
    assert not meet(server, client, text, "wrong")[0].proven


def test_sha2_forgets_the_oldest(monkeypatch):
    monkeypatch.setattr(sha2, "CACHED_MAX", 1)
    server, client = sha2.CachingSha2Password(), sha2.client_exchange
    texts = [server.make("x", SALT[n : n + 20]) for n in range(2)]
    for text in texts:
        assert meet(server, client, text, "x")[0].last_word is None
    assert meet(server, client, texts[1], "x")[0].last_word == b"\x03"
    assert meet(server, client, texts[0], "x")[0].last_word is None


def test_a_sha2_client_gives_its_password_to_no_unknown_server():
    server, client = sha2.CachingSha2Password(), sha2.client_exchange
    for channel in (Channel(), Channel(private=True)):
        with pytest.raises(CannotAuthenticate, match="upstream_ssl_ca"):
            meet(server, client, kept(server, "s3cret"), "s3cret", channel)


def test_a_unix_socket_proves_the_systems_user_and_nobody_else():
    method = SocketPeer()
    for peer, proven in (("ann", True), ("bob", False), ("", False)):
        with pytest.raises(StopIteration) as ended:
            next(method.exchange("ann", b"", Channel(private=True, peer_user=peer)))
        assert ended.value.value.proven is proven
    with pytest.raises(ValueError, match="system user"):
        method.check_text("")


def test_a_certificates_proof_needs_the_password_and_the_certificate():
    info = certificate_proof(b"key", b"s" * 20, b"f" * 32)
    assert info[:1] == b"\1"
    assert len(info) == 65
    assert info[1:] == info[1:].upper()
    assert proves_certificate(info, b"key", b"s" * 20, b"f" * 32)
    assert not proves_certificate(info, b"yek", b"s" * 20, b"f" * 32)
    assert not proves_certificate(info, b"key", b"s" * 20, b"g" * 32)
    assert not proves_certificate(info.lower(), b"key", b"s" * 20, b"f" * 32)
    assert not proves_certificate(certificate_proof(b"", b"s", b"f"), b"", b"s", b"f")
