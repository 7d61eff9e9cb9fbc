"""A certificate that signs itself can be verified by who has it, whichever name the host has."""

import pytest
from cryptography import x509

from ibb.server.connections.certificate import self_signed


@pytest.mark.parametrize("host", ["relay", "relay.internal", "under_score"])
def test_it_names_its_host_where_newer_programs_look(host):
    certificate = x509.load_pem_x509_certificate(self_signed(host)[0])
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == [host]


@pytest.mark.parametrize("host", ["", "drüben"])
def test_a_name_that_no_client_could_ask_for_is_left_out(host):
    certificate = x509.load_pem_x509_certificate(self_signed(host)[0])
    with pytest.raises(x509.ExtensionNotFound):
        certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
