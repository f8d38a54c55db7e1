"""What a file written for Kafka's quorum of controllers (KRaft) says, and what comes of it here.

A broker keeps its metadata itself, in SQLite, or in the ZooKeeper that zookeeper.connect names: there is no quorum.
Settings that describe a node of its own are accepted and have no effect. Those that make it one of several are refused
without zookeeper.connect: every node would start, and be a cluster of its own.
"""

from collections.abc import Iterator

from ottla.config.broker import BrokerSettings, Note

_NAMES = (
    "process.roles",
    "controller.listener.names",
    "controller.quorum.voters",
    "controller.quorum.bootstrap.servers",
)
_NO_CONTROLLERS = (
    "no node is a controller alone here: brokers elect one among themselves. Do not start this node; give the brokers "
    "zookeeper.connect"
)
_WHAT_TO_DO = (
    "it counts on controllers elsewhere, and brokers here find each other through ZooKeeper. For a cluster, run "
    "`ottla zookeeper` and give every broker zookeeper.connect; for a broker on its own, give "
    "process.roles=broker,controller and no other node in controller.quorum.*"
)


def quorum_problems(settings: BrokerSettings) -> list[str]:
    """Why this node cannot be what the file says."""
    if "broker" not in settings.process_roles:
        return [f"process.roles: {_NO_CONTROLLERS}"]
    if settings.zookeeper_connect:
        return []
    voters = settings.controller_quorum_voters
    others = [voter for voter in voters if voter.partition("@")[0] != str(settings.node_id)]
    names = {
        "process.roles": "controller" not in settings.process_roles,
        "controller.quorum.voters": bool(others),
        "controller.quorum.bootstrap.servers": len(settings.controller_quorum_bootstrap_servers) > 1,
    }
    wrong = [name for name, is_wrong in names.items() if is_wrong]
    return [f"{', '.join(wrong)}: {_WHAT_TO_DO}"] if wrong else []


def quorum_notes(settings: BrokerSettings) -> Iterator[Note]:
    """One line for what is accepted and does nothing."""
    given = [name for name in _NAMES if name in settings.explicit]
    if given:
        where = "in ZooKeeper" if settings.zookeeper_connect else f"in SQLite, in {settings.data_dirs[0]}"
        yield Note(f"{', '.join(given)}: no effect here, metadata is kept {where}; there is no quorum of controllers")
