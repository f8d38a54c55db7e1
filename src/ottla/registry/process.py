"""A registry as a process: its loop, its signals, and what its options mean."""

import asyncio
import logging
import signal
import ssl
from collections.abc import Callable, Mapping
from typing import NamedTuple
from urllib.parse import urlsplit

from ottla.client.cluster import Cluster
from ottla.client.settings import client_settings
from ottla.http.address import BadListener, HttpAddress
from ottla.http.application import Login
from ottla.http.limits import HttpLimits
from ottla.http.listening import address_of, listen
from ottla.http.server import HttpServer
from ottla.registry.election import GROUP, SESSION_TIMEOUT_MS, Identity
from ottla.registry.limits import LIMITS
from ottla.registry.rest.forwarding import Forwarder
from ottla.registry.rest.login import login_by_file, login_by_scram
from ottla.registry.rest.rights import NO_RIGHTS, AclRights
from ottla.registry.rest.serving import registry_application
from ottla.registry.service import Registry
from ottla.registry.store import SCHEMAS_TOPIC

logger = logging.getLogger(__name__)

HTTP_LIMITS = HttpLimits(connections_max=1024, body_bytes_max=4 * LIMITS.schema_bytes_max)
PATIENCE_S = 60.0
"""So long are brokers waited for that were never reached: they may start at the same time."""


class RegistryOptions(NamedTuple):
    settings: Mapping[str, str]
    """Of the connection to the brokers, `bootstrap.servers` among them."""
    listen: HttpAddress
    advertised_url: str | None = None
    """How other instances reach this one."""
    keystore: str | None = None
    keystore_password: str | None = None
    truststore: str | None = None
    users_file: str | None = None
    scram: str | None = None
    """The mechanism by which names and passwords are tried at the brokers."""
    authorize: bool = False
    super_users: tuple[str, ...] = ()
    group: str = GROUP
    topic: str = SCHEMAS_TOPIC
    session_timeout_ms: int = SESSION_TIMEOUT_MS


async def serve(options: RegistryOptions, announce: Callable[[str], None]) -> int:
    """Until SIGTERM or SIGINT. `announce` is told the URL once, when requests are answered."""
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped.set)
    settings = client_settings({"client.id": "ottla-registry", **options.settings})

    def connect() -> Cluster:
        return settings.cluster(patience_s=PATIENCE_S)

    # The port is taken before anything else: that it is not free is known at once, and others learn the real one.
    listening = listen(options.listen, backlog=HTTP_LIMITS.connections_max)
    try:
        tls, forwarding_tls = _tls(options)
        identity = _identity(options, address_of(listening))
        registry = Registry(
            connect,
            identity,
            group=options.group,
            session_timeout_ms=options.session_timeout_ms,
            topic=options.topic,
        )
        rights = AclRights(registry.cluster, options.super_users) if options.authorize else NO_RIGHTS
        served = registry_application(registry, Forwarder(forwarding_tls), rights)
        server = HttpServer(served, listening, limits=HTTP_LIMITS, tls=tls, login=_login(options))
        starting = asyncio.create_task(registry.start())
        stopping = asyncio.create_task(stopped.wait())
        await asyncio.wait([starting, stopping], return_when=asyncio.FIRST_COMPLETED)
        if starting.done():
            await starting
            await server.start()
            announce(server.url)
            await stopping
            await server.stop()
        else:
            starting.cancel()
            await asyncio.gather(starting, return_exceptions=True)
        await registry.stop()
    finally:
        listening.close()
    return 0


def _identity(options: RegistryOptions, address: HttpAddress) -> Identity:
    scheme = "http" if options.keystore is None else "https"
    if options.advertised_url is None:
        return Identity(address.host, address.port, scheme)
    where = urlsplit(options.advertised_url)
    if where.scheme not in ("http", "https") or where.hostname is None:
        raise BadListener(f"--advertised-url: `{options.advertised_url}` is not http://HOST:PORT")
    return Identity(where.hostname, where.port or address.port, where.scheme)


def _login(options: RegistryOptions) -> Login | None:
    if options.users_file is not None:
        return login_by_file(options.users_file)
    return login_by_scram(options.settings, options.scram) if options.scram is not None else None


def _tls(options: RegistryOptions) -> tuple[ssl.SSLContext | None, ssl.SSLContext | None]:
    """For clients, and for what is sent on to another instance: they share an authority."""
    if options.keystore is None:
        return None, None
    from ottla.tls.contexts import Agreement, client_context, server_context  # noqa: PLC0415 - costs time to import
    from ottla.tls.stores import StoreSettings, load_key_store, load_trust_store  # noqa: PLC0415

    keys = load_key_store(StoreSettings(options.keystore, options.keystore_password))
    trust = load_trust_store(StoreSettings(options.truststore)) if options.truststore is not None else None
    server = server_context(keys, None, ssl.CERT_NONE, Agreement())
    return server, client_context(None, trust, Agreement(), check_hostname=True)
