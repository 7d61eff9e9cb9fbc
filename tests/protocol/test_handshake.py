"""Greeting and answers keep their layout, and no stranger's bytes get past it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ibb.protocol.capabilities import CLIENT_CAPABILITIES, SERVER_CAPABILITIES, Capability
from ibb.protocol.change_user import parse_change_user
from ibb.protocol.errors import FormatError, ProtocolError, Truncated
from ibb.protocol.fields import lenenc, lestr
from ibb.protocol.handshake import (
    CONNECTION_ATTRIBUTES_MAX,
    AuthMoreData,
    AuthSwitchRequest,
    Greeting,
    HandshakeResponse,
    SslRequest,
)

SCRAMBLE = bytes(range(0x21, 0x35))
GREETING = Greeting("10.11.99-MariaDB-ibb", 7, SCRAMBLE, SERVER_CAPABILITIES, 45)
RESPONSE = HandshakeResponse(
    CLIENT_CAPABILITIES,
    1 << 30,
    45,
    "repl",
    b"r" * 20,
    auth_plugin="mysql_native_password",
    attributes={"_client_name": "ibb", "_pid": "1"},
)
HEAD = b"\x00\x82\x00\x00" + bytes(4) + b"\x2d" + bytes(23)  # protocol 4.1, secure connection

texts = st.text(st.characters(exclude_characters="\0", codec="utf-8"), max_size=20)
optional_bits = st.lists(
    st.sampled_from(
        [
            Capability.CONNECT_WITH_DB,
            Capability.PLUGIN_AUTH,
            Capability.CONNECT_ATTRS,
            Capability.PLUGIN_AUTH_LENENC_CLIENT_DATA,
            Capability.SECURE_CONNECTION,
            Capability.EXTENDED_METADATA,
        ]
    )
).map(lambda bits: sum(set(bits), start=Capability.PROTOCOL_41))


def test_greeting_has_the_layout_of_the_reference():
    assert GREETING.encode() == (
        b"\x0a10.11.99-MariaDB-ibb\0"
        b"\x07\0\0\0" + SCRAMBLE[:8] + b"\0"
        b"\xde\xf7\x2d\x02\x00\x7f\x80\x15" + bytes(6) + bytes(4) + SCRAMBLE[8:] + b"\0"
        b"mysql_native_password\0"
    )


@given(
    texts,
    st.integers(0, 2**32 - 1),
    st.binary(min_size=20, max_size=20).map(lambda raw: raw.replace(b"\0", b"!")),
    st.integers(0, 255),
)
def test_greeting_round_trips(version, connection_id, scramble, collation):
    greeting = Greeting(version, connection_id, scramble, SERVER_CAPABILITIES, collation)
    assert Greeting.parse(greeting.encode()) == greeting


def test_a_cut_greeting_is_truncated():
    raw = GREETING.encode()
    for end in range(len(raw)):
        with pytest.raises(Truncated):
            Greeting.parse(raw[:end])


def test_extended_bits_of_a_mysql_server_are_not_meant():
    raw = bytearray(Greeting("8.0.30", 1, SCRAMBLE, Capability(0x1D_0008_F7FF), 45).encode())
    assert Greeting.parse(raw).capabilities == 0x0008_F7FF


def test_greeting_of_a_server_without_plugins_means_native():
    capabilities = SERVER_CAPABILITIES & ~Capability.PLUGIN_AUTH
    raw = Greeting("10.4.1", 1, SCRAMBLE, capabilities, 8).encode()
    greeting = Greeting.parse(raw.removesuffix(b"mysql_native_password\0"))
    assert greeting.auth_plugin == "mysql_native_password"
    assert greeting.scramble == SCRAMBLE


def test_a_greeting_that_understates_its_scramble_is_still_read_in_step():
    raw = bytearray(GREETING.encode())
    assert raw[raw.index(SCRAMBLE[:8]) + 16] == 21
    raw[raw.index(SCRAMBLE[:8]) + 16] = 0
    assert Greeting.parse(raw) == GREETING


@pytest.mark.parametrize("missing", [Capability.PROTOCOL_41, Capability.SECURE_CONNECTION])
def test_a_server_of_the_last_century_is_refused(missing):
    raw = Greeting("3.23.58", 1, SCRAMBLE, SERVER_CAPABILITIES & ~missing, 8).encode()
    with pytest.raises(ProtocolError, match=r"3\.23\.58"):
        Greeting.parse(raw)
    with pytest.raises(ProtocolError, match="protocol 9"):
        Greeting.parse(b"\x09" + raw[1:])


@given(optional_bits, optional_bits, texts, st.binary(max_size=250), texts, texts, st.data())
def test_response_round_trips_under_any_common_capabilities(
    server, client, user, proof, database, plugin, data
):
    both = server & client
    if not both & (Capability.PLUGIN_AUTH_LENENC_CLIENT_DATA | Capability.SECURE_CONNECTION):
        proof = proof.replace(b"\0", b".")
    attributes = data.draw(st.dictionaries(texts, texts, max_size=5))
    response = HandshakeResponse(
        client,
        data.draw(st.integers(0, 2**32 - 1)),
        data.draw(st.integers(0, 255)),
        user,
        proof,
        database if both & Capability.CONNECT_WITH_DB else None,
        plugin if both & Capability.PLUGIN_AUTH else None,
        attributes if both & Capability.CONNECT_ATTRS else {},
    )
    assert HandshakeResponse.parse(response.encode(server), server) == response


def test_response_of_the_relay_has_the_layout_of_the_reference():
    pairs = lestr(b"_client_name") + lestr(b"ibb") + lestr(b"_pid") + lestr(b"1")
    assert RESPONSE.encode(SERVER_CAPABILITIES) == (
        b"\x04\xa2\x1a\x00" + b"\x00\x00\x00\x40" + b"\x2d" + bytes(19) + bytes(4) + b"repl\0"
        b"\x14" + b"r" * 20 + b"mysql_native_password\0" + lestr(pairs)
    )


def test_a_cut_response_is_truncated_until_only_optional_fields_miss():
    raw = RESPONSE.encode(SERVER_CAPABILITIES)
    whole_at = {raw.index(b"r" * 20) + 20, raw.index(b"password\0") + 9}
    for end in range(len(raw)):
        if end in whole_at:
            assert HandshakeResponse.parse(raw[:end], SERVER_CAPABILITIES).user == "repl"
        else:
            with pytest.raises(Truncated):
                HandshakeResponse.parse(raw[:end], SERVER_CAPABILITIES)


def test_bytes_after_a_response_are_ignored():
    raw = RESPONSE.encode(SERVER_CAPABILITIES)
    assert HandshakeResponse.parse(raw + b"\x07zstd", SERVER_CAPABILITIES) == RESPONSE


def test_a_client_of_the_last_century_is_refused():
    raw = b"\x00\x80" + RESPONSE.encode(SERVER_CAPABILITIES)[2:]
    with pytest.raises(ProtocolError, match=r"4\.1"):
        HandshakeResponse.parse(raw, SERVER_CAPABILITIES)


@pytest.mark.parametrize(
    ("collation", "sent", "name"),
    [
        (8, "zoë".encode("cp1252"), "zoë"),
        (5, b"\x80uro\x81", "€uro\x81"),
        (8, "zoë".encode(), "zoë"),  # a replica of 10.11 sends this
        (45, "zoë".encode(), "zoë"),
        (255, "zoë".encode(), "zoë"),  # as MySQL's clients have it
        (45, "zoë".encode("cp1252"), "zo\N{REPLACEMENT CHARACTER}"),
        (63, "zoë".encode("cp1252"), "zo\N{REPLACEMENT CHARACTER}"),
    ],
)
def test_names_are_read_in_the_character_set_of_the_client(collation, sent, name):
    capabilities = CLIENT_CAPABILITIES | Capability.CONNECT_WITH_DB
    made = HandshakeResponse(capabilities, 1 << 24, collation, "@", b"", "@@")
    raw = made.encode(SERVER_CAPABILITIES).replace(b"@@", sent).replace(b"@", sent)
    read = HandshakeResponse.parse(raw, SERVER_CAPABILITIES)
    assert (read.user, read.database) == (name, name)
    again = b"\x11" + sent + b"\0\0" + sent + b"\0" + collation.to_bytes(2, "little")
    read = parse_change_user(again, SERVER_CAPABILITIES, read)
    assert (read.user, read.database) == (name, name)


def test_a_name_that_is_not_utf8_can_still_be_shown():
    raw = HEAD + b"caf\xe9\0\0"
    user = HandshakeResponse.parse(raw, SERVER_CAPABILITIES).user
    assert user == "caf\N{REPLACEMENT CHARACTER}"
    user.encode()


def response_with_attributes(block):
    head = b"\x00\x82\x10\x00" + HEAD[4:]
    return head + b"repl\0\0" + lestr(block)


def test_attributes_stay_inside_their_block_and_below_their_limit():
    pairs = [lestr(b"k%d" % index) + lestr(b"v") for index in range(CONNECTION_ATTRIBUTES_MAX + 1)]
    most = HandshakeResponse.parse(
        response_with_attributes(b"".join(pairs[:-1])), SERVER_CAPABILITIES
    )
    assert len(most.attributes) == CONNECTION_ATTRIBUTES_MAX
    for block in (b"".join(pairs), lestr(b"key"), lestr(b"key") + lenenc(1 << 40)):
        with pytest.raises(FormatError, match="connection attributes"):
            HandshakeResponse.parse(response_with_attributes(block), SERVER_CAPABILITIES)


def test_ssl_request_is_the_head_of_a_response_and_nothing_else():
    request = SslRequest(CLIENT_CAPABILITIES | Capability.SSL, 1 << 24, 45)
    raw = request.encode()
    assert len(raw) == 32
    assert SslRequest.parse(raw) == request
    assert SslRequest.parse(raw + b"\0") is None
    assert SslRequest.parse(HEAD) is None
    assert SslRequest.parse(RESPONSE.encode(SERVER_CAPABILITIES)) is None


def test_switch_to_native_sends_the_nonce_with_a_nul():
    request = AuthSwitchRequest.native(SCRAMBLE)
    assert request.encode() == b"\xfemysql_native_password\0" + SCRAMBLE + b"\0"
    again = AuthSwitchRequest.parse(request.encode())
    assert again == request
    assert again.nonce == SCRAMBLE


def test_a_short_nonce_is_refused():
    with pytest.raises(FormatError, match="3 bytes, not 20"):
        _ = AuthSwitchRequest("mysql_native_password", b"abc").nonce


def test_an_old_style_password_is_never_sent():
    with pytest.raises(ProtocolError, match="old-style"):
        AuthSwitchRequest.parse(b"\xfe")


def test_server_packets_at_login_are_told_apart_by_their_first_byte():
    assert AuthMoreData.parse(b"\x01salt") == AuthMoreData(b"salt")
    assert AuthMoreData(b"salt").encode() == b"\x01salt"
    assert AuthMoreData.parse(b"\x00") is None
    assert AuthSwitchRequest.parse(b"\x01salt") is None


@given(st.binary(max_size=120))
def test_arbitrary_bytes_give_a_result_or_a_named_error(raw):
    for parse in (
        Greeting.parse,
        SslRequest.parse,
        AuthSwitchRequest.parse,
        AuthMoreData.parse,
        lambda data: HandshakeResponse.parse(HEAD + data, SERVER_CAPABILITIES),
        lambda data: HandshakeResponse.parse(data, Capability((1 << 64) - 1)),
    ):
        try:
            parse(raw)
        except (FormatError, ProtocolError) as error:
            assert str(error)  # noqa: PT017
