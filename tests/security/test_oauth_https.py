"""A broker that reads the keys of an issuer over https: tokens are checked, and a new key counts without a restart."""

import ssl
from contextlib import closing
from pathlib import Path

import pytest
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Route
from tests.security.sasl_kit import Issuer, sasl_settings
from tests.security.test_sasl_wire import choose, connected, serves, show

from ottla.http.address import HttpAddress
from ottla.http.application import application
from ottla.http.thread import HttpThread
from ottla.testing import broker
from ottla.testing.tls import Certificates
from ottla.testing.waiting import wait_until
from ottla.tls.authority import LOCAL_HOSTS

pytestmark = pytest.mark.one_broker("names its listeners")


def test_tokens_are_checked_by_keys_that_come_over_https(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    certificates, issuer = Certificates(tmp_path), Issuer(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(certificates.ca))  # what the system of the broker trusts
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates.pem("issuer", LOCAL_HOSTS))

    async def keys(_: Request) -> Response:
        return FileResponse(tmp_path / "jwks.json")

    server = HttpThread(lambda: application([Route("/jwks", keys)]), HttpAddress("127.0.0.1", 0), tls=context)
    server.start()
    with closing(server):
        over_https = {"sasl.oauthbearer.jwks.endpoint.url": f"{server.url}/jwks"}
        with broker(sasl_settings(issuer, **over_https)) as running:

            def works() -> bool:
                with connected(running) as wire:
                    choose(wire, "OAUTHBEARER")
                    answer = show(wire, b"n,,\x01auth=Bearer " + issuer.token().encode() + b"\x01\x01")
                    return not answer.auth_bytes and serves(wire)

            wait_until(works, "its first key is known")
            issuer.rotate()
            wait_until(works, "its second key is known")
