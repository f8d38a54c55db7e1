"""SSL contexts from stores. Keys go from memory to OpenSSL without touching a disk."""

import ssl
from typing import NamedTuple

from ottla.tls.ciphers import Suites
from ottla.tls.keys_in_memory import load_keys
from ottla.tls.stores import KeyStore, TrustStore

VERSIONS = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}


class Agreement(NamedTuple):
    """What may be agreed on with a peer."""

    versions: tuple[str, ...] = tuple(VERSIONS)
    suites: Suites | None = None
    """None: what OpenSSL thinks best."""

    @property
    def spoken(self) -> tuple[str, ...]:
        """The versions, oldest first, that there are suites for."""
        suites = self.suites
        return tuple(
            version
            for version in VERSIONS
            if version in self.versions
            and (suites is None or (suites.tls_1_3 if version == "TLSv1.3" else suites.tls_1_2 is not None))
        )


def server_context(
    keys: KeyStore, trust: TrustStore | None, verify: ssl.VerifyMode, agreement: Agreement
) -> ssl.SSLContext:
    """What a listener needs. Without a trust store the system's authorities are believed, as in Java."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    _agree(context, agreement)
    # A client cannot make the broker do the costly part of a handshake again and again on one connection, and none
    # comes back by a ticket from before its authority was taken out of the trust store.
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_CIPHER_SERVER_PREFERENCE | ssl.OP_NO_TICKET
    context.num_tickets = 0
    load_keys(context, keys.key_pem, keys.chain_pem)
    context.verify_mode = verify
    if verify is not ssl.CERT_NONE:
        _trust(context, trust, ssl.Purpose.CLIENT_AUTH)
    return context


def client_context(
    keys: KeyStore | None, trust: TrustStore | None, agreement: Agreement, *, check_hostname: bool
) -> ssl.SSLContext:
    """What a broker needs as the client of another one."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    _agree(context, agreement)
    context.check_hostname = check_hostname
    _trust(context, trust, ssl.Purpose.SERVER_AUTH)
    if keys is not None:
        load_keys(context, keys.key_pem, keys.chain_pem)
    return context


def try_handshake(server: ssl.SSLContext, client: ssl.SSLContext) -> None:
    """Let these two meet, without a network; ssl.SSLError says why they do not agree."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    sides = [
        client.wrap_bio(to_client, to_server, server_side=False, server_hostname="localhost"),
        server.wrap_bio(to_server, to_client, server_side=True),
    ]
    for _ in range(10):
        for side in list(sides):
            try:
                side.do_handshake()
                sides.remove(side)
            except ssl.SSLWantReadError:
                continue
        if not sides:
            return
    raise ssl.SSLError("the handshake does not come to an end")


def _agree(context: ssl.SSLContext, agreement: Agreement) -> None:
    spoken = agreement.spoken
    context.minimum_version = VERSIONS[spoken[0]]
    context.maximum_version = VERSIONS[spoken[-1]]
    if agreement.suites is not None and agreement.suites.tls_1_2 is not None:
        context.set_ciphers(agreement.suites.tls_1_2)


def _trust(context: ssl.SSLContext, trust: TrustStore | None, purpose: ssl.Purpose) -> None:
    if trust is None:
        context.load_default_certs(purpose)
        return
    context.load_verify_locations(cadata=trust.pem)
    # As Java does: whatever is in the trust store is believed, also a certificate that another one has signed.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
