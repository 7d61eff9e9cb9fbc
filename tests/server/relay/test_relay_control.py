"""SHOW REPLICA STATUS tells what is, not what was wished for."""

import pytest

from ibb.server.config import Config
from ibb.server.relay.relay_control import RelayControl
from ibb.server.relay.upstream import UpstreamAddress
from ibb.server.relay.upstream_tls import UpstreamTls

from ..waiting import until


async def following(serve, store, target, primary_settings, **settings):
    """Return the status of a relay that follows a primary."""
    primary = await serve(store, **primary_settings)
    server = await serve(target)
    tls = UpstreamTls.from_config(Config(**settings))
    address = UpstreamAddress("127.0.0.1", primary.port(), "repl", "secret", tls)
    control = server.upstream = RelayControl(target, server, address, tls)
    server.server_id = 100
    before = control.status()
    control.start()
    await until(lambda: control.status()["Slave_IO_Running"] == "Yes")
    status = control.status()
    await control.stop()
    return before, status


@pytest.mark.parametrize("wanted", ["prefer", "unverified", "off"])
async def test_the_status_shows_whether_the_upstream_is_encrypted(serve, store, target, wanted):
    before, status = await following(serve, store, target, {}, upstream_ssl=wanted)
    encrypted = "No" if wanted == "off" else "Yes"
    assert (before["Master_SSL_Allowed"], before["Master_SSL_Cipher"]) == (encrypted, "")
    assert status["Master_SSL_Allowed"] == encrypted
    assert status["Master_SSL_Cipher"].startswith("TLS_") == (wanted != "off")


async def test_a_primary_without_tls_is_warned_of_and_shown(serve, store, target, capfd):
    _, status = await following(serve, store, target, {"skip_ssl": True})
    assert (status["Master_SSL_Allowed"], status["Master_SSL_Cipher"]) == ("No", "")
    (line,) = [x for x in capfd.readouterr().out.splitlines() if "upstream_not_encrypted" in x]
    assert "warning" in line
    assert "offers no TLS" in line


async def test_who_chose_no_tls_is_not_warned(serve, store, target, capfd):
    await following(serve, store, target, {"skip_ssl": True}, upstream_ssl="off")
    assert "upstream_not_encrypted" not in capfd.readouterr().out


@pytest.mark.parametrize(("wanted", "shown"), [("verify", "Yes"), ("prefer", "No")])
async def test_the_status_shows_whether_the_certificate_must_be_right(
    serve, store, target, wanted, shown
):
    _, status = await following(serve, store, target, {}, upstream_ssl=wanted)
    assert status["Master_SSL_Verify_Server_Cert"] == shown
