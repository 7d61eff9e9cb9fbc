"""What can go wrong, and by whose fault: damaged bytes, a misbehaving peer, a refused client."""

from __future__ import annotations


class IbbError(Exception):
    """Everything that this package raises on purpose."""


class FormatError(IbbError):
    """
    Stored or received bytes are not what the format allows.

    Args:
        what: the rule that is broken, with the values seen.
        file: name of the file, or None when the bytes came from elsewhere.
        page: page number in that file, where pages apply.
        offset: byte offset in the page, or else in the file, event or payload.
    """

    def __init__(
        self,
        what: str,
        *,
        file: str | None = None,
        page: int | None = None,
        offset: int | None = None,
    ) -> None:
        self.what = what
        self.file = file
        self.page = page
        self.offset = offset
        super().__init__(what)

    def __str__(self) -> str:
        places = []
        if self.file is not None:
            places.append(f"file {self.file}")
        if self.page is not None:
            places.append(f"page {self.page}")
        if self.offset is not None:
            places.append(f"offset {self.offset}")
        return f"{self.what} ({', '.join(places)})" if places else self.what


class Truncated(FormatError):  # noqa: N818 (a condition, not always an error)
    """The bytes end too early: more of them could cure it; the caller knows if more can come."""


class ProtocolError(IbbError):
    """The peer broke the wire protocol: the connection cannot go on."""


class SqlError(IbbError):
    """
    A statement or command is refused; the client gets exactly this as an ERR packet.

    Args:
        code: MariaDB error number, see `error_codes`.
        sqlstate: five ASCII characters.
        message: the text for the client, without the number.
    """

    def __init__(self, code: int, sqlstate: str, message: str) -> None:
        assert 0 < code < 1 << 16
        assert len(sqlstate) == 5
        self.code = code
        self.sqlstate = sqlstate
        self.message = message
        super().__init__(code, sqlstate, message)

    def __str__(self) -> str:
        return f"{self.code} ({self.sqlstate}) {self.message}"
