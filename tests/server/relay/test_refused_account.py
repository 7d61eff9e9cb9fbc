"""An account that the upstream refuses: the log says why, for whoever looks there first."""

import asyncio

import pytest

from ibb.protocol.error_codes import ACCESS_DENIED_ERROR, TOO_MANY_USER_CONNECTIONS
from ibb.server.config import Config
from ibb.server.relay.relay import Relay, for_log
from ibb.server.relay.upstream import UpstreamAddress

from ..waiting import until


@pytest.mark.parametrize(
    ("error", "logged_in", "reason"),
    [
        (ACCESS_DENIED_ERROR.error("u", "h", "YES"), False, "its name or password is wrong"),
        (ACCESS_DENIED_ERROR.error("u", "h", "NO"), False, "no password was sent"),
        (ACCESS_DENIED_ERROR.error("u", "h", "YES"), True, "GRANT REPLICATION SLAVE"),
        (TOO_MANY_USER_CONNECTIONS.error("u"), False, "as many connections"),
    ],
)
def test_the_log_tells_why_an_account_is_refused_and_not_which(error, logged_in, reason):
    said = for_log(error, logged_in=logged_in)
    assert said.startswith(f"{error.code} ({error.sqlstate}) the upstream refuses our account: ")
    assert reason in said
    assert "'u'" not in said


@pytest.mark.parametrize(
    ("user", "password", "reason"),
    [
        ("watcher", "looking", "the login is right, but it may not do what a replica does"),
        ("watcher", "wrong", "its name or password is wrong"),
        ("watcher", "", "no password was sent"),
    ],
)
async def test_a_relay_tells_a_refused_login_from_one_that_may_not_replicate(
    serve, store, target, capfd, user, password, reason
):
    server = await serve(store)
    relay = Relay(
        target,
        UpstreamAddress("127.0.0.1", server.port(), user, password),
        config=Config(),
        server_id=50,
        port=lambda: 3307,
    )
    task = asyncio.create_task(relay.run())
    await until(lambda: relay.last_error is not None)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    told = "".join(capfd.readouterr())
    assert reason in told
    assert "the upstream refuses our account" in told
