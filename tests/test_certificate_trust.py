"""By what a client believes a server's certificate."""

import ssl
from hashlib import sha256

import pytest

from ibb.certificate_trust import MODES, CertificateTrust, certificate_fingerprint
from ibb.server.connections.certificate import self_signed

DIGITS = "0f" * 32


@pytest.fixture
def files(tmp_path):
    paths = tmp_path / "certificate.pem", tmp_path / "key.pem"
    for path, data in zip(paths, self_signed("localhost"), strict=True):
        path.write_bytes(data)
    return [str(path) for path in paths]


def set_up(**settings):
    """Return a context that was one of those that believe everybody, or check names at least."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    CertificateTrust(**settings).set_up(context)
    return context


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("ca", "fingerprint"), [("ca.pem", ""), ("", DIGITS), ("ca.pem", DIGITS)])
def test_what_a_certificate_is_checked_by_makes_verify_of_prefer(mode, ca, fingerprint):
    trust = CertificateTrust.of(mode, ca, fingerprint, "", "")
    assert trust.mode == ("verify" if mode == "prefer" else mode)
    assert trust.is_checked
    plain = CertificateTrust.of(mode, "", "", "", "")
    assert plain.mode == mode
    assert not plain.is_checked


def test_tls_is_demanded_but_where_it_is_off_or_preferred():
    demanding = [mode for mode in MODES if CertificateTrust(mode).demands_tls]
    assert demanding == ["verify", "unverified"]
    assert CertificateTrust().mode == "off"


@pytest.mark.parametrize("written", [DIGITS, DIGITS.upper(), ":".join(["0F"] * 32)])
def test_a_fingerprint_may_be_written_in_any_way(written):
    trust = CertificateTrust.of("verify", "", written, "", "")
    assert trust.accepts(bytes.fromhex(DIGITS))
    assert not trust.accepts(bytes(32))
    assert not trust.accepts(b"")
    assert CertificateTrust.of("verify", "ca.pem", "", "", "").accepts(bytes(32))


@pytest.mark.parametrize("written", ["0f", DIGITS[:-1], DIGITS + "0f", "0g" * 32, DIGITS + "\n"])
def test_what_is_no_fingerprint_is_refused(written):
    with pytest.raises(ValueError, match="64 hexadecimal digits"):
        CertificateTrust.of("verify", "", written, "", "")


def test_the_handshake_checks_a_certificate_by_those_that_vouch_for_it_alone(files):
    checked = set_up(mode="verify", ca=files[0])
    assert checked.verify_mode == ssl.CERT_REQUIRED
    assert checked.check_hostname
    assert checked.cert_store_stats()["x509"] == 1
    for settings in ({"fingerprint": DIGITS}, {"ca": files[0], "fingerprint": DIGITS}, {}):
        context = set_up(mode="verify", **settings)
        assert context.verify_mode == ssl.CERT_NONE
        assert not context.check_hostname


def test_files_are_read_where_a_context_is_set_up(files):
    certificate, key = files
    set_up(mode="prefer", certificate=certificate, key=key)
    for wrong in ({"ca": "/nowhere.pem"}, {"ca": key}, {"certificate": key, "key": certificate}):
        with pytest.raises((OSError, ValueError)):
            set_up(mode="prefer", **wrong)


def test_a_fingerprint_is_the_sha_256_of_the_certificate():
    assert certificate_fingerprint(b"der") == sha256(b"der").digest()
    assert certificate_fingerprint(None) == sha256(b"").digest()
