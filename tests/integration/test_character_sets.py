"""Every character of the character sets of several bytes is what a real server takes it for."""

from itertools import product

import pytest

from ibb.protocol.rows.own_characters import own_characters
from ibb.protocol.rows.text_encoding import CODECS, text_of

EAST_ASIAN = sorted(name for name in CODECS if not name.startswith(("utf", "ucs")))
NO_CHARACTER = "?"  # in the server's answer


@pytest.fixture(scope="module")
def codes(rig, mariadb_10):
    """Return a server that has all codes of one, two and three bytes that may be a character."""
    server = rig.primary(mariadb_10)
    high = range(0x80, 0x100)
    found = [bytes([one]) for one in range(0x100)]
    found += [bytes(pair) for pair in product(high, range(0x30, 0x100))]
    found += [bytes([0x8F, *pair]) for pair in product(range(0xA1, 0xFF), repeat=2)]
    server.run("CREATE DATABASE d", "CREATE TABLE d.codes (code VARBINARY(3)) ENGINE=MEMORY")
    with server.connection() as connection, connection.cursor() as cursor:
        cursor.executemany("INSERT INTO d.codes VALUES (%s)", [(code,) for code in found])
    return server


@pytest.mark.parametrize("charset", EAST_ASIAN)
def test_each_character_is_what_the_server_says(codes, charset):
    text = f"CONVERT(code USING {charset})"
    rows = codes.rows(
        f"SELECT code, {text} FROM d.codes WHERE CHAR_LENGTH({text}) = 1 AND BINARY {text} = code"
    )
    known = {code: char for code, char in rows if char != NO_CHARACTER or code == b"?"}
    assert len(known) > 6000
    assert {code: text_of(code, charset, "strict") for code in known} == known
    assert own_characters(charset).keys() <= known.keys()
    many = b"".join(known)
    assert text_of(many, charset, "strict") == "".join(known.values())
