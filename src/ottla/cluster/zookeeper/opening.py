"""From settings to a store in ZooKeeper, ready to use."""

import ssl

from ottla.cluster.zookeeper.importing import find_luggage
from ottla.cluster.zookeeper.store import ZooKeeperStore
from ottla.config.broker import BrokerSettings
from ottla.config.setting import ConfigError
from ottla.config.zookeeper import parse_connect


async def open_zookeeper(settings: BrokerSettings) -> ZooKeeperStore:
    """Connect to the ZooKeeper that the settings name and load everything."""
    from ottla.cluster.zookeeper.kazoo_client import Credentials, KazooZooKeeper, Tls  # noqa: PLC0415 (a broker on
    # its own must not pay for loading it)

    assert settings.zookeeper_connect
    ensemble = parse_connect(settings.zookeeper_connect)
    user, password = settings.zookeeper_sasl_username, settings.zookeeper_sasl_password
    tls = None
    if settings.zookeeper_ssl_client_enable:
        _check_files(settings)
        tls = Tls(
            certificate=settings.zookeeper_ssl_keystore_location,
            key=settings.zookeeper_ssl_keystore_location,
            key_password=settings.zookeeper_ssl_keystore_password,
            authorities=settings.zookeeper_ssl_truststore_location,
            check_host_name=bool(settings.zookeeper_ssl_endpoint_identification_algorithm),
        )
    client = KazooZooKeeper(
        ",".join(ensemble.hosts),
        chroot=ensemble.chroot,
        session_timeout_ms=settings.zookeeper_session_timeout_ms,
        requests_max=settings.zookeeper_max_in_flight_requests,
        credentials=Credentials(user, password) if user and password else None,
        set_access_lists=settings.zookeeper_set_acl,
        tls=tls,
    )
    timeout_ms = settings.zookeeper_connection_timeout_ms or settings.zookeeper_session_timeout_ms
    luggage = find_luggage(settings.data_dirs[0], settings.node_id)
    return await ZooKeeperStore.open(client, timeout_ms / 1000, luggage=luggage, where=settings.zookeeper_connect)


def _check_files(settings: BrokerSettings) -> None:
    """Kazoo would try again and again with files that cannot be read."""
    context = ssl.create_default_context()
    for store, location in (
        ("truststore", settings.zookeeper_ssl_truststore_location),
        ("keystore", settings.zookeeper_ssl_keystore_location),
    ):
        try:
            if location is not None and store == "truststore":
                context.load_verify_locations(location)
            elif location is not None:
                context.load_cert_chain(location, password=settings.zookeeper_ssl_keystore_password or "")
        except (OSError, ssl.SSLError) as error:
            raise ConfigError([f"zookeeper.ssl.{store}.location: {location} cannot be used: {error}"]) from error
