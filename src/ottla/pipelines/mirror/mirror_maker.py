"""MirrorMaker's settings as a mirror: MirrorMaker 2's properties, MirrorMaker 1's flags. Pure.

What has no counterpart is named with its reason, never passed over. What would change the meaning is refused.
"""

from collections.abc import Mapping, Sequence
from itertools import permutations
from typing import Any, NamedTuple

from ottla.client.security import SECURITY_SETTINGS
from ottla.client.settings import CLIENT_SETTINGS
from ottla.pipelines.errors import PipelineError
from ottla.pipelines.mirror.spec import Mirror, read_mirror

_CLIENT = (CLIENT_SETTINGS | SECURITY_SETTINGS) - {"bootstrap.servers"}
_DEFAULT_POLICY = ("DefaultReplicationPolicy", "org.apache.kafka.connect.mirror.DefaultReplicationPolicy")
_IDENTITY_POLICY = ("IdentityReplicationPolicy", "org.apache.kafka.connect.mirror.IdentityReplicationPolicy")

_WITHOUT_EFFECT: Mapping[str, str] = {
    "refresh.topics.enabled": "topics are found with every batch",
    "refresh.topics.interval.seconds": "topics are found with every batch",
    "refresh.groups.enabled": "groups are looked for in every round of checkpoints",
    "refresh.groups.interval.seconds": "groups are looked for in every round of checkpoints",
    "sync.topic.acls.interval.seconds": "ACLs are looked at as often as settings: sync.topic.configs.interval.seconds",
    "offset.lag.max": "offsets are translated exactly, however far behind a group is",
    "exactly.once.source.support": "every batch is one transaction of the target",
    "tasks.max": "Spark has as many tasks as --master gives it cores",
    "dedicated.mode.enable.internal.rest": "there are no workers that talk to each other",
    "heartbeats.replication.enabled": "heartbeats are mirrored where they are emitted",
    "heartbeats.topic.replication.factor": "replication.factor is that of all topics that are made",
    "checkpoints.topic.replication.factor": "replication.factor is that of all topics that are made",
    "offset-syncs.topic.replication.factor": "replication.factor is that of all topics that are made",
    "config.storage.replication.factor": "there are no topics of Kafka Connect",
    "offset.storage.replication.factor": "there are no topics of Kafka Connect",
    "status.storage.replication.factor": "there are no topics of Kafka Connect",
    "use.defaults.from": "defaults are each cluster's own",
}
_FLOW_KEYS = frozenset({
    "enabled", "topics", "topics.exclude", "topics.blacklist", "groups", "groups.exclude", "groups.blacklist",
    "replication.factor", "replication.policy.class", "replication.policy.separator", "sync.group.offsets.enabled",
    "sync.group.offsets.interval.seconds", "emit.checkpoints.enabled", "emit.checkpoints.interval.seconds",
    "emit.heartbeats.enabled", "emit.heartbeats.interval.seconds", "sync.topic.configs.enabled",
    "sync.topic.configs.interval.seconds", "sync.topic.acls.enabled", "config.properties.exclude",
    "config.properties.blacklist",
    "offset-syncs.topic.location", "consumer.auto.offset.reset",
})  # fmt: skip


class Translated(NamedTuple):
    mirror: Mirror
    notes: list[str]
    """Settings without effect here, with the reason, and settings that nobody knows."""


class WrongProperties(PipelineError):
    """MirrorMaker's settings that cannot become a mirror."""


def from_properties(given: Mapping[str, str], name: str) -> Translated:
    """What `connect-mirror-maker.sh` is given."""
    clusters = _list(given.get("clusters", ""))
    if len(clusters) < 2:
        raise WrongProperties("`clusters` names the clusters, for instance `clusters = east, west`")
    entries: dict[str, Any] = {}
    for cluster in clusters:
        bootstrap = given.get(f"{cluster}.bootstrap.servers")
        if not bootstrap:
            raise WrongProperties(f"`{cluster}.bootstrap.servers` is missing")
        client = {key: value for key, value in given.items() if key in _CLIENT}
        client |= {key: given[f"{cluster}.{key}"] for key in sorted(_CLIENT) if f"{cluster}.{key}" in given}
        entries[cluster] = {"bootstrap": bootstrap, "client": client}
    flows = [
        _flow(given, source, target)
        for source, target in permutations(clusters, 2)
        if given.get(f"{source}->{target}.enabled", given.get("enabled", "false")).strip().lower() == "true"
    ]
    if not flows:
        raise WrongProperties("no flow is enabled, for instance by `" + "->".join(clusters[:2]) + ".enabled = true`")
    return Translated(_mirror({"name": name, "clusters": entries, "flows": flows}), _notes(given, clusters))


def _flow(given: Mapping[str, str], source: str, target: str) -> dict[str, Any]:
    get = _Of(given, f"{source}->{target}.")
    flow: dict[str, Any] = {"from": source, "to": target, "group_offsets": _group_offsets(get)}
    flow["names"] = _names(get)
    if get.text("offset-syncs.topic.location") not in (None, "source"):
        raise WrongProperties("offset-syncs.topic.location: syncs are written to the source only")
    for key, words in (
        ("topics", ("topics",)), ("exclude", ("topics.exclude", "topics.blacklist")), ("groups", ("groups",)),
        ("exclude_groups", ("groups.exclude", "groups.blacklist")),
        ("exclude_settings", ("config.properties.exclude", "config.properties.blacklist")),
    ):  # fmt: skip
        found = next((text for word in words if (text := get.text(word)) is not None), None)
        if found is not None:
            flow[key] = _list(found)
    for key, word in (
        ("heartbeat_interval", "emit.heartbeats.interval.seconds"),
        ("settings_interval", "sync.topic.configs.interval.seconds"),
    ):
        if (seconds := get.text(word)) is not None:
            flow[key] = f"{seconds} seconds"
    rounds = [get.text("emit.checkpoints.interval.seconds"), get.text("sync.group.offsets.interval.seconds")]
    if shortest := [int(seconds) for seconds in rounds if seconds is not None]:
        flow["group_interval"] = f"{min(shortest)} seconds"
    flow["heartbeats"] = get.flag("emit.heartbeats.enabled", default=True)
    flow["settings"] = get.flag("sync.topic.configs.enabled", default=True)
    flow["acls"] = get.flag("sync.topic.acls.enabled", default=True)
    if (replicas := get.text("replication.factor")) is not None:
        flow["replication_factor"] = int(replicas)
    if (start := get.text("consumer.auto.offset.reset")) is not None:
        flow["start"] = start
    return flow


class _Of:
    """Settings of one flow: `A->B.x` before `x`."""

    def __init__(self, given: Mapping[str, str], prefix: str) -> None:
        self._given = given
        self._prefix = prefix

    def text(self, name: str) -> str | None:
        found = self._given.get(self._prefix + name, self._given.get(name))
        return None if found is None else found.strip()

    def flag(self, name: str, *, default: bool) -> bool:
        text = self.text(name)
        if text is not None and text.lower() not in ("true", "false"):
            raise WrongProperties(f"{name} is true or false, not `{text}`")
        return default if text is None else text.lower() == "true"


def _names(get: _Of) -> str:
    policy = get.text("replication.policy.class") or _DEFAULT_POLICY[0]
    if get.text("replication.policy.separator") not in (None, "."):
        raise WrongProperties("replication.policy.separator: names are separated by a dot here")
    if policy in _IDENTITY_POLICY:
        return "keep"
    if policy in _DEFAULT_POLICY:
        return "prefix"
    raise WrongProperties(f"replication.policy.class: {policy} is a class of the JVM and cannot be loaded here")


def _group_offsets(get: _Of) -> str:
    if get.flag("sync.group.offsets.enabled", default=False):
        return "write"
    return "checkpoints" if get.flag("emit.checkpoints.enabled", default=True) else "off"


def _notes(given: Mapping[str, str], clusters: Sequence[str]) -> list[str]:
    prefixes = [f"{source}->{target}." for source, target in permutations(clusters, 2)]
    notes = []
    for key in sorted(given):
        plain = next((key.removeprefix(prefix) for prefix in prefixes if key.startswith(prefix)), key)
        cluster = next((name for name in clusters if key.startswith(f"{name}.")), None)
        if cluster is not None:
            plain = key.removeprefix(f"{cluster}.")
            if plain == "bootstrap.servers" or plain in _CLIENT:
                continue
        elif plain in _FLOW_KEYS or plain in _CLIENT or plain in ("clusters", "name"):
            continue
        reason = _WITHOUT_EFFECT.get(plain, "is not known here")
        notes.append(f"{key} has no effect: {reason}" if plain in _WITHOUT_EFFECT else f"{key} {reason}")
    return notes


def from_flags(consumer: Mapping[str, str], producer: Mapping[str, str], include: str) -> Translated:
    """What MirrorMaker 1 is given: names are kept, and nothing but records is mirrored."""
    for what, settings in (("--consumer.config", consumer), ("--producer.config", producer)):
        if not settings.get("bootstrap.servers"):
            raise WrongProperties(f"the file of {what} has no bootstrap.servers")
    entries = {
        name: {
            "bootstrap": settings["bootstrap.servers"],
            "client": {key: value for key, value in settings.items() if key in _CLIENT},
        }
        for name, settings in (("source", consumer), ("target", producer))
    }
    flow = {
        "from": "source", "to": "target", "topics": _list(include), "names": "keep", "exclude": ["__.*"],
        "start": consumer.get("auto.offset.reset", "latest"),
        "heartbeats": False, "settings": False, "acls": False, "group_offsets": "off",
        "compression": producer.get("compression.type", "lz4"),
    }  # fmt: skip
    used = {"bootstrap.servers", "auto.offset.reset", "group.id", *_CLIENT}
    notes = [f"{key} of --consumer.config is not known here" for key in sorted(consumer) if key not in used]
    used = {"bootstrap.servers", "compression.type", *_CLIENT}
    notes += [f"{key} of --producer.config is not known here" for key in sorted(producer) if key not in used]
    name = consumer.get("group.id", "mirror-maker")
    return Translated(_mirror({"name": name, "clusters": entries, "flows": [flow]}), notes)


def _mirror(values: Mapping[str, Any]) -> Mirror:
    mirror, problems = read_mirror(values)
    if mirror is None or problems:
        raise WrongProperties("; ".join(f"{place}: {text}" for place, text in problems))
    return mirror


def _list(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]
