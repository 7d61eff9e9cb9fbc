"""An account that the upstream refuses: the log says why, for whoever looks there first."""

import pytest

from ibb.protocol.error_codes import ACCESS_DENIED_ERROR, TOO_MANY_USER_CONNECTIONS
from ibb.server.relay.relay import for_log


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
