"""A stream reader whose bytes can be given away as they come, without a task that reads them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import SupportsIndex


class TappedReader(asyncio.StreamReader):
    """
    A reader of the running loop, as others until `hand_on`.

    Args:
        limit: as others have.
    """

    def __init__(self, limit: int) -> None:
        super().__init__(limit=limit, loop=asyncio.get_running_loop())
        self._take: Callable[[bytes], None] | None = None
        self._tell: Callable[[BaseException | None], None] | None = None
        self._source: asyncio.ReadTransport | None = None

    def set_transport(self, transport: asyncio.BaseTransport) -> None:
        """Take note of what is read from."""
        super().set_transport(transport)
        self._source = cast("asyncio.ReadTransport", transport)  # uvloop's is none by name

    def hand_on(
        self, take: Callable[[bytes], None], tell: Callable[[BaseException | None], None]
    ) -> None:
        """
        Give away what has come and comes, by the loop; nothing can be read any more.

        Args:
            take: is given bytes, none of them empty.
            tell: is told of the end; with an error, if the connection has broken.
        """
        rest = bytes(self._buffer)  # type: ignore[attr-defined] # there is no other way to it
        self._buffer.clear()  # type: ignore[attr-defined]
        self._take, self._tell = take, tell
        if rest:
            take(rest)
        if self.at_eof() or self.exception() is not None:
            tell(self.exception())
        self.resume()  # it may have had enough

    def stop(self) -> bytes:
        """
        Read nothing any more; return what has come so far.

        Raises:
            Exception: the connection has broken by this.
        """
        if (error := self.exception()) is not None:
            raise error
        self.pause()
        rest = bytes(self._buffer)  # type: ignore[attr-defined] # as above
        self._buffer.clear()  # type: ignore[attr-defined]
        return rest

    def pause(self) -> None:
        """Have nothing come for a while, behind `hand_on`."""
        if self._source is not None and not self._source.is_closing():
            self._source.pause_reading()

    def resume(self) -> None:
        """Go on behind `pause`."""
        if self._source is not None and not self._source.is_closing():
            self._source.resume_reading()

    def feed_data(self, data: Iterable[SupportsIndex]) -> None:
        """Take what has come."""
        if self._take is None:
            super().feed_data(data)
        else:
            self._take(bytes(data))

    def feed_eof(self) -> None:
        """Take note that nothing comes any more."""
        super().feed_eof()
        if self._tell is not None:
            self._tell(None)

    def set_exception(self, exc: Exception) -> None:
        """Take note that the connection has broken."""
        super().set_exception(exc)
        if self._tell is not None:
            self._tell(exc)


async def open_tapped(
    host: str, port: int, limit: int
) -> tuple[TappedReader, asyncio.StreamWriter]:
    """Connect as `asyncio.open_connection` does."""
    loop = asyncio.get_running_loop()
    reader = TappedReader(limit)
    protocol = asyncio.StreamReaderProtocol(reader, loop=loop)
    transport, _ = await loop.create_connection(lambda: protocol, host, port)
    return reader, asyncio.StreamWriter(transport, protocol, reader, loop)
