"""The proof is the one that real clients make; nothing else passes."""

import hashlib
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mysql_mimic.auth import NativePasswordAuthPlugin, User

from ibb.protocol.native_password import (
    NO_PASSWORD_FITS,
    check,
    hash_text,
    parse_hash_text,
    scramble_response,
    stage2,
)

CAPTURES = Path(__file__).parents[1] / "data" / "captures"
nonces = st.binary(min_size=20, max_size=20)


def captured(name):
    """Return the nonce that a real server sent and the response that a real client gave."""
    greeting, answer = (
        bytes.fromhex(p["hex"]) for p in json.loads((CAPTURES / name).read_text())[:2]
    )
    start = greeting.index(0) + 5
    nonce = greeting[start : start + 8] + greeting[start + 27 : start + 39]
    offset = answer.index(0, 32) + 1
    assert answer[offset] == 20
    return nonce, answer[offset + 1 : offset + 21]


@pytest.mark.parametrize(
    "name", ["p10-001-A_r10_gtid.json", "p10-010-H_mb10_text.json", "p10-031-ZONGJI.json"]
)
def test_real_clients_proofs_are_accepted_and_reproduced(name):
    nonce, response = captured(name)
    assert check(response, nonce, stage2("replpw"))
    assert scramble_response("replpw", nonce) == response


def test_a_real_clients_wrong_password_is_refused():
    nonce, response = captured("p10-005-E_r10_wrongpw.json")
    assert not check(response, nonce, stage2("replpw"))


def test_stage2_is_what_sql_shows():
    """The value of PASSWORD('mypass') in MariaDB's manual."""
    text = "*6C8989366EAF75BB670AD8EA7A7FC1176A95CEF4"
    assert hash_text(stage2("mypass")) == text
    assert parse_hash_text(text.lower()) == stage2("mypass")
    assert stage2("mypass") == hashlib.sha1(hashlib.sha1(b"mypass").digest()).digest()


@pytest.mark.parametrize(
    "text", ["*12", "mypass", "6C8989366EAF75BB670AD8EA7A7FC1176A95CEF4", "*" + "x" * 40]
)
def test_other_text_is_no_hash(text):
    with pytest.raises(ValueError, match="not a password hash"):
        parse_hash_text(text)


@given(st.text(min_size=1, max_size=40), nonces)
def test_the_right_password_passes(password, nonce):
    assert check(scramble_response(password, nonce), nonce, stage2(password))


@given(st.binary(max_size=64), nonces)
def test_made_up_responses_fail(response, nonce):
    assert not check(response, nonce, stage2("replpw"))
    assert not check(response, nonce, NO_PASSWORD_FITS)


@given(nonces, st.integers(0, 159))
def test_one_wrong_bit_fails(nonce, bit):
    right = scramble_response("replpw", nonce)
    wrong = bytearray(right)
    wrong[bit // 8] ^= 1 << bit % 8
    assert not check(bytes(wrong), nonce, stage2("replpw"))


@pytest.mark.parametrize("change", [lambda r: r + b"\0", lambda r: r[:-1], lambda r: r[:0]])
def test_other_lengths_fail(change):
    nonce = b"n" * 20
    assert not check(change(scramble_response("replpw", nonce)), nonce, stage2("replpw"))


def test_the_empty_password_takes_the_empty_response_only():
    nonce = b"n" * 20
    assert stage2("") == b""
    assert hash_text(b"") == ""
    assert parse_hash_text("") == b""
    assert scramble_response("", nonce) == b""
    assert check(b"", nonce, b"")
    assert not check(scramble_response("x", nonce), nonce, b"")
    assert not check(b"", nonce, stage2("x"))
    assert not check(b"", nonce, NO_PASSWORD_FITS)


@given(st.text(min_size=1, max_size=40), nonces)
def test_mysql_mimic_agrees(password, nonce):
    """Its helper makes our stage2, so a release that changes it must show here."""
    text = NativePasswordAuthPlugin.create_auth_string(password)
    assert bytes.fromhex(text) == stage2(password)
    user = User("u", text)
    plugin = NativePasswordAuthPlugin()
    assert plugin.password_matches(user, scramble_response(password, nonce), nonce)
