"""Waiting, in a loop, for what nothing tells of."""

import asyncio
from collections.abc import Callable

SECONDS_MAX = 20.0
POLL_SECONDS = 0.001


async def until(condition: Callable[[], object]) -> None:
    """Return when *condition* holds; raise `TimeoutError` after `SECONDS_MAX`."""
    async with asyncio.timeout(SECONDS_MAX):
        while not condition():  # noqa: ASYNC110 - what is waited for may be in other threads
            await asyncio.sleep(POLL_SECONDS)
