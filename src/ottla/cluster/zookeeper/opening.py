"""From settings to a store in ZooKeeper, ready to use."""

import contextlib
import ssl
from collections.abc import Iterator

from ottla.cluster.zookeeper.importing import find_local_metadata
from ottla.cluster.zookeeper.store import ZooKeeperStore
from ottla.config.broker import BrokerSettings
from ottla.config.setting import ConfigError
from ottla.config.zookeeper import parse_connect
from ottla.tls.trusting import trusting


async def open_zookeeper(settings: BrokerSettings) -> ZooKeeperStore:
    """Connect to the ZooKeeper that the settings name and load everything."""
    from ottla.cluster.zookeeper.kazoo_client import Credentials, KazooZooKeeper  # noqa: PLC0415 (a broker on
    # its own must not pay for loading it)

    assert settings.zookeeper_connect
    ensemble = parse_connect(settings.zookeeper_connect)
    user, password = settings.zookeeper_sasl_username, settings.zookeeper_sasl_password
    client = KazooZooKeeper(
        ",".join(ensemble.hosts),
        chroot=ensemble.chroot,
        session_timeout_ms=settings.zookeeper_session_timeout_ms,
        requests_max=settings.zookeeper_max_in_flight_requests,
        credentials=Credentials(user, password) if user and password else None,
        set_access_lists=settings.zookeeper_set_acl,
        tls=_tls(settings) if settings.zookeeper_ssl_client_enable else None,
    )
    timeout_ms = settings.zookeeper_connection_timeout_ms or settings.zookeeper_session_timeout_ms
    local = find_local_metadata(settings.data_dirs[0], settings.node_id)
    return await ZooKeeperStore.open(client, timeout_ms / 1000, local=local, where=settings.zookeeper_connect)


def _tls(settings: BrokerSettings) -> ssl.SSLContext:
    """ConfigError says which file cannot be used."""
    authorities, own = settings.zookeeper_ssl_truststore_location, settings.zookeeper_ssl_keystore_location
    with _named("truststore", authorities):
        context = trusting(authorities)
    context.check_hostname = bool(settings.zookeeper_ssl_endpoint_identification_algorithm)
    if own is not None:
        with _named("keystore", own):
            context.load_cert_chain(own, password=settings.zookeeper_ssl_keystore_password or "")
    return context


@contextlib.contextmanager
def _named(store: str, location: str | None) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise ConfigError([f"zookeeper.ssl.{store}.location: {location} cannot be used: {error}"]) from error
