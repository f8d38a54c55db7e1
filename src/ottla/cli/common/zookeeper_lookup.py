"""The brokers behind `--zookeeper`: old command lines name the ZooKeeper of a cluster where tools want its brokers."""

import msgspec

from ottla.cli.common.output import CommandError, note
from ottla.cluster.image import BrokerImage
from ottla.cluster.zookeeper.client import ZooKeeperError
from ottla.config.zookeeper import parse_connect

INSTEAD = "name the brokers with --bootstrap-server instead"


def brokers_behind(connect: str, security_protocol: str = "PLAINTEXT") -> str:
    """What `--bootstrap-server` would be: the addresses of the brokers that this ZooKeeper knows."""
    from ottla.cluster.zookeeper.looking import registered_brokers, run_with_client

    try:
        ensemble = parse_connect(connect)
    except ValueError as error:
        raise CommandError(f"--zookeeper {connect}: {error}; give host:port,host:port/path") from None
    try:
        brokers = run_with_client(ensemble, registered_brokers)
    except ZooKeeperError as error:
        alone = "a broker on its own has no ZooKeeper"
        raise CommandError(f"--zookeeper {connect}: {error}; {INSTEAD} ({alone})") from error
    except msgspec.ValidationError as error:
        raise CommandError(f"--zookeeper {connect}: its brokers cannot be read ({error}); {INSTEAD}") from error
    if not brokers:
        where = f"below {ensemble.chroot}" if ensemble.chroot else "in it (is there a /path to add?)"
        raise CommandError(f"--zookeeper {connect}: no broker is registered {where}; start one, or {INSTEAD}")
    found = ",".join(address for broker in brokers if (address := _address(broker, security_protocol)))
    note(f"--zookeeper {connect} has its brokers at {found}; today's tools take --bootstrap-server {found}")
    return found


def _address(broker: BrokerImage, security_protocol: str) -> str:
    """Where the broker speaks this protocol, or else its first address: then the connection says what is wrong."""
    fitting = [each for each in broker.endpoints if each.security_protocol.upper() == security_protocol.upper()]
    for endpoint in fitting or broker.endpoints[:1]:
        host = f"[{endpoint.host}]" if ":" in endpoint.host else endpoint.host
        return f"{host}:{endpoint.port}"
    return ""
