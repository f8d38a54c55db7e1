"""Authorities that a client is told to believe are believed, with every Python."""

import ssl
from pathlib import Path

import pytest
from tests.unit.client.tls import make_certificates

from ottla.tls.contexts import try_handshake
from ottla.tls.trusting import trusting


def test_an_authority_may_lack_what_keytool_and_openssl_leave_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    certificates = make_certificates(tmp_path)  # whose authority does not tell what its key is for
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(certificates.server, certificates.server_key)
    lenient = ssl.create_default_context

    def strict(*args: object, **named: str | None) -> ssl.SSLContext:
        context = lenient(**named)  # type: ignore[arg-type]
        context.verify_flags |= ssl.VERIFY_X509_STRICT  # as from Python 3.13 on
        return context

    monkeypatch.setattr(ssl, "create_default_context", strict)
    refusing = ssl.create_default_context(cafile=str(certificates.authority))
    believing = trusting(str(certificates.authority))
    for client in (refusing, believing):
        client.check_hostname = False
    with pytest.raises(ssl.SSLCertVerificationError, match="key usage"):
        try_handshake(server, refusing)
    try_handshake(server, believing)
