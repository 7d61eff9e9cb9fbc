"""
What clients are told whose packets are not what they should be, as MariaDB tells them.

Source: dump-protocol 1.1, 3.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ibb.protocol import error_codes as codes
from ibb.protocol.command import SEMI_SYNC_ACK, CommandCode
from ibb.protocol.packet import PacketsOutOfOrder, PacketTooLarge
from ibb.protocol.reply import err_of
from ibb.protocol.statement_command import STMT_CLOSE, STMT_SEND_LONG_DATA

if TYPE_CHECKING:
    from ibb.protocol.errors import FormatError, ProtocolError, SqlError

_NEVER_ANSWERED: Final = (STMT_CLOSE, STMT_SEND_LONG_DATA)


def end_of(error: ProtocolError | FormatError, *, logged_in: bool) -> SqlError:
    """Return the error that ends a connection."""
    if isinstance(error, PacketTooLarge):
        return codes.NET_PACKET_TOO_LARGE.error()
    if isinstance(error, PacketsOutOfOrder):
        return codes.NET_PACKETS_OUT_OF_ORDER.error()
    return (codes.MALFORMED_PACKET if logged_in else codes.HANDSHAKE_ERROR).error()


def answer_to_malformed(payload: bytes) -> list[bytes]:
    """Return what answers a command whose fields do not fit; the session goes on."""
    code = payload[0]
    if code in _NEVER_ANSWERED:
        return []
    if code == SEMI_SYNC_ACK:  # of no dump
        return [err_of(codes.UNKNOWN_COM_ERROR.error())]
    if code == CommandCode.REGISTER_SLAVE:
        return [err_of(codes.UNKNOWN_ERROR.error("Wrong parameters to function register_slave"))]
    return [err_of(codes.MALFORMED_PACKET.error())]
