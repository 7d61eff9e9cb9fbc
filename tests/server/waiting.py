"""Waiting, in a loop, for what nothing tells of."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

SECONDS_MAX = 20.0
POLL_SECONDS = 0.001
Answer = TypeVar("Answer")


async def until(condition: Callable[[], object]) -> None:
    """Return when *condition* holds; raise `TimeoutError` after `SECONDS_MAX`."""
    async with asyncio.timeout(SECONDS_MAX):
        while not condition():  # noqa: ASYNC110 - what is waited for may be in other threads
            await asyncio.sleep(POLL_SECONDS)


async def answer_of(ask: Callable[[], Awaitable[Answer]]) -> Answer:
    """Ask until there is an answer, and return it; raise `TimeoutError` after `SECONDS_MAX`."""
    async with asyncio.timeout(SECONDS_MAX):
        while not (answer := await ask()):  # noqa: ASYNC110 - nothing tells when there is one
            await asyncio.sleep(POLL_SECONDS)
        return answer


async def turns(count: int = 10) -> None:
    """Let the event loop look *count* times what there is to do."""
    for _ in range(count):
        await asyncio.sleep(0)
