"""Commands that need a privilege: without it error 1227, as by a statement."""

import pytest

from ibb.protocol.reply import is_err, is_ok, parse_err

from ..raw_client import RawClient


@pytest.mark.parametrize("options", [0, 0x01, 0x04, 0x08, 0x10, 0x20])
async def test_a_refresh_needs_its_privilege(serve, store, options):
    server = await serve(store)
    for user, password, wanted in (("watcher", "looking", is_err), ("admin", "mighty", is_ok)):
        async with await RawClient.logged_in(server, user, password) as client:
            await client.send(bytes([7, options]))
            answer = await client.packet()
            assert wanted(answer)
            if is_err(answer):
                assert "the RELOAD privilege" in parse_err(answer).message


async def test_a_refresh_of_hosts_forgives_addresses(serve, store):
    server = await serve(store, max_connect_errors=1)
    async with await RawClient.logged_in(server, "admin", "mighty") as client:
        server.guard.failed("192.0.2.1", "someone")
        assert server.guard.is_blocked("192.0.2.1")
        await client.send(b"\x07\x08")
        assert is_ok(await client.packet())
        assert not server.guard.is_blocked("192.0.2.1")
