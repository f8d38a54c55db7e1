"""Certificates made for a test, and a proxy that ends TLS before a broker that speaks plaintext."""

import asyncio
import contextlib
import datetime
import ipaddress
import ssl
import threading
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

KEY_PASSWORD = "open sesame"
_CHUNK_BYTES = 65_536


class Certificates(NamedTuple):
    authority: Path
    server: Path
    server_key: Path
    client: Path
    client_key: Path
    """Encrypted with KEY_PASSWORD."""


def make_certificates(folder: Path, host: str = "127.0.0.1") -> Certificates:
    authority_key = ec.generate_private_key(ec.SECP256R1())
    authority = _certificate("authority", authority_key, None, authority_key)
    paths = Certificates(*(folder / f"{name}.pem" for name in Certificates._fields))
    paths.authority.write_bytes(authority.public_bytes(serialization.Encoding.PEM))
    for name, certificate_path, key_path, password in (
        ("server", paths.server, paths.server_key, None),
        ("client", paths.client, paths.client_key, KEY_PASSWORD.encode()),
    ):
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = _certificate(name, key, authority, authority_key, host)
        certificate_path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        encryption = serialization.BestAvailableEncryption(password) if password else serialization.NoEncryption()
        key_path.write_bytes(
            key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encryption)
        )
    return paths


def _certificate(
    name: str,
    key: ec.EllipticCurvePrivateKey,
    issuer: x509.Certificate | None,
    issuer_key: ec.EllipticCurvePrivateKey,
    host: str = "127.0.0.1",
) -> x509.Certificate:
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer.subject if issuer is not None else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=issuer is None, path_length=None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key()), critical=False)
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(host))]), critical=False)
        .sign(issuer_key, hashes.SHA256())
    )


class TlsProxy:
    """Listens with TLS on a port of its own, and passes bytes on to `target`, which may be set later."""

    def __init__(self, certificates: Certificates, *, wants_client_certificate: bool = False) -> None:
        self.target: tuple[str, int] | None = None
        self.accepted = 0
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(certificates.server, certificates.server_key)
        if wants_client_certificate:
            self._context.verify_mode = ssl.CERT_REQUIRED
            self._context.load_verify_locations(certificates.authority)
        self.port = 0

    async def serve(self, ready: Callable[[], None], stop: asyncio.Event) -> None:
        server = await asyncio.start_server(self._pass_on, "127.0.0.1", 0, ssl=self._context)
        self.port = server.sockets[0].getsockname()[1]
        ready()
        await stop.wait()
        server.close()

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert self.target is not None
        self.accepted += 1
        inner_reader, inner_writer = await asyncio.open_connection(*self.target)
        await asyncio.gather(_copy(reader, inner_writer), _copy(inner_reader, writer))


async def _copy(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while chunk := await source.read(_CHUNK_BYTES):
            sink.write(chunk)
            await sink.drain()
    sink.close()


@contextlib.contextmanager
def running_proxy(certificates: Certificates, *, wants_client_certificate: bool = False) -> Iterator[TlsProxy]:
    """A proxy on a thread of its own, so that Spark's other processes can use it while the test waits."""
    proxy = TlsProxy(certificates, wants_client_certificate=wants_client_certificate)
    ready = threading.Event()
    with _on_a_thread(lambda stop: proxy.serve(ready.set, stop)):
        assert ready.wait(20)
        yield proxy


@contextlib.contextmanager
def _on_a_thread(work: Callable[[asyncio.Event], Coroutine[Any, Any, None]]) -> Iterator[None]:
    loop = asyncio.new_event_loop()
    stop = asyncio.Event()

    async def run() -> None:
        await work(stop)
        others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    thread = threading.Thread(target=lambda: loop.run_until_complete(run()), daemon=True)
    thread.start()
    try:
        yield
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(20)
        loop.close()
