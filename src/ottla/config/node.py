"""Settings of what a broker is: its id, its rack, its part in the cluster."""

import dataclasses

from ottla.config.setting import SettingType, setting


@dataclasses.dataclass(frozen=True, kw_only=True)
class NodeSettings:
    """Who this broker is."""

    node_id: int = setting(
        1,
        at_least=0,
        kafka_default=None,
        differs="Kafka has no default and will not start without one",
        doc="The id of this broker.",
    )
    broker_id: int = setting(
        1,
        at_least=0,
        kafka_default=-1,
        differs="it follows node.id",
        doc="The name node.id had before KRaft. Give either; if both are given they must agree.",
    )
    broker_rack: str | None = setting(
        None, type=SettingType.STRING, doc="Rack or zone of this broker, reported to clients in metadata."
    )
    process_roles: tuple[str, ...] = setting(
        ("broker", "controller"),
        choices=("broker", "controller"),
        kafka_default=None,
        differs="every node is both",
        doc="Roles of this process. Every node is a broker and may become the controller, so it has no effect; "
        "'broker' alone needs zookeeper.connect, and a node that is only 'controller' is refused.",
    )
    controller_listener_names: tuple[str, ...] = setting(
        (),
        doc="Names of listeners that Kafka keeps for its controllers. The controller lives inside the broker process, "
        "so listeners with these names are not opened.",
    )
    controller_quorum_voters: tuple[str, ...] = setting(
        (),
        doc="Kafka's controller quorum as id@host:port. Without zookeeper.connect only this node itself may be named, "
        "with it there is no quorum; it has no effect either way.",
    )
    controller_quorum_bootstrap_servers: tuple[str, ...] = setting(
        (),
        doc="Where Kafka finds its controller quorum. Without zookeeper.connect at most one address, this node's own, "
        "may be named; it has no effect.",
    )
