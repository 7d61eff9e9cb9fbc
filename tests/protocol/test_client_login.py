"""The client's half of a login, without a connection."""

import pytest

from ibb.protocol import parsec_password
from ibb.protocol.authentication import Channel
from ibb.protocol.capabilities import SERVER_CAPABILITIES, Capability
from ibb.protocol.client_login import (
    LOGIN_ROUNDS_MAX,
    LoginRefused,
    StartTls,
    log_in,
    log_in_blocking,
)
from ibb.protocol.error_codes import ACCESS_DENIED_ERROR
from ibb.protocol.errors import ProtocolError, SqlError
from ibb.protocol.handshake import AuthSwitchRequest, Greeting
from ibb.protocol.reply import err_of, ok

SCRAMBLE = b"abcdefghijklmnopqrst"
FAST_OK = b"\x01\x03"


def greeting(version="11.8.2-MariaDB"):
    offered = SERVER_CAPABILITIES | Capability.SSL
    return Greeting(version, 7, SCRAMBLE, offered, 45).encode()


def client(*, tls=False):
    return log_in("u", "secret", "tool", lambda offered: tls and offered, server="the server")


def run(answers, *, tls=False):
    """Give the client one answer after the other; return what it sent, and what came of it."""
    sent, left = [], list(answers)
    done = log_in_blocking(
        client(tls=tls),
        sent.append,
        lambda: left.pop(0),
        lambda request: sent.append(StartTls(request)) or Channel(private=True, trusted=True),
    )
    assert left == []
    return sent, done


def test_a_greeting_is_waited_for_and_answered_once():
    sent, done = run([greeting(), ok()])
    assert len(sent) == 1
    assert b"secret" not in sent[0]
    assert (done.version, done.channel) == ("11.8.2-MariaDB", Channel())


def test_tls_begins_before_the_account_is_named():
    sent, done = run([greeting(), ok()], tls=True)
    assert isinstance(sent[0], StartTls)
    assert b"u\0" in sent[1]
    assert done.channel.trusted


def test_a_method_may_begin_with_an_empty_packet():
    switch = AuthSwitchRequest(parsec_password.PLUGIN_NAME, SCRAMBLE).encode()
    login = client()
    assert next(login) is None
    login.send(greeting())
    assert login.send(switch) == b""


def test_a_fast_ok_is_not_answered():
    sent, _ = run([greeting(), FAST_OK, ok()])
    assert len(sent) == 1


@pytest.mark.parametrize(
    ("answers", "error"),
    [
        ([greeting("5.7.44")], LoginRefused),
        ([greeting(), AuthSwitchRequest("gssapi", SCRAMBLE).encode()], LoginRefused),
        ([greeting(), err_of(ACCESS_DENIED_ERROR.error("u", "h", "YES"))], SqlError),
        ([err_of(ACCESS_DENIED_ERROR.error("u", "h", "YES"))], SqlError),
        ([greeting(), b"\x07"], ProtocolError),
        ([greeting(), b"\x01more"], ProtocolError),
        ([greeting(), *[FAST_OK] * LOGIN_ROUNDS_MAX], ProtocolError),
    ],
)
def test_refusals(answers, error):
    with pytest.raises(error):
        run(answers)
