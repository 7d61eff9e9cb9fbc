"""A server with a store, and readers of it."""

import pytest

from ..raw_client import dumping


@pytest.fixture
async def server(serve, store):
    return await serve(store)


@pytest.fixture
async def reading(server):
    """Return a function that starts a dump; all end with the test."""
    dumps = []

    async def start(position="", *, server_id=33, groups=None):
        dump = await dumping(server, position, server_id=server_id, non_block=False)
        dumps.append(dump)
        if groups is not None:
            await dump.groups(groups)
        return dump

    yield start
    for dump in dumps:
        await dump.client.close()
