"""
COM_CHANGE_USER: another login on the same connection, as pools of connections do it.

    11, zstr user, u8str answer to the greeting's scramble, zstr database,
    [u16 collation, [zstr plugin, [lenenc length, pairs of lestr: attributes]]]
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .capabilities import Capability, effective
from .character_sets import decoded_name
from .fields import FieldReader
from .handshake import HandshakeResponse, read_attributes

if TYPE_CHECKING:
    from .fields import Buffer

CHANGE_USER: Final = 0x11


def parse_change_user(
    payload: Buffer, server: Capability, client: HandshakeResponse
) -> HandshakeResponse:
    """
    Read the command as if it were an answer to the greeting.

    Args:
        payload: begins with `CHANGE_USER`.
        server: capabilities of the greeting.
        client: what this client answered to the greeting; counts where the command says nothing.

    Raises:
        FormatError: the fields do not fit the payload.
    """
    both = effective(server, client.capabilities)
    reader = FieldReader(payload, 1, what="COM_CHANGE_USER")
    user = reader.zstr()
    answer = reader.u8str()
    database = reader.zstr()
    collation, plugin, attributes = client.collation, None, client.attributes
    if reader.remaining:
        collation = reader.u16() & 0xFF
    if both & Capability.PLUGIN_AUTH and reader.remaining:
        plugin = reader.zstr().decode(errors="replace")
    if both & Capability.CONNECT_ATTRS and reader.remaining:
        attributes = read_attributes(reader)
    return HandshakeResponse(
        client.capabilities,
        client.packet_bytes_max,
        collation,
        decoded_name(user, collation),
        answer,
        decoded_name(database, collation) or None,
        plugin,
        attributes,
    )
