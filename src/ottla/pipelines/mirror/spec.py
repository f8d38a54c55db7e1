"""What a mirror's file says, and what is wrong with it."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

from ottla.pipelines.cluster_lint import client_problems
from ottla.pipelines.durations import bytes_of, seconds_of
from ottla.pipelines.errors import InvalidPipeline
from ottla.pipelines.loading import Document, load
from ottla.pipelines.registry import hint
from ottla.pipelines.spec import ClusterEntry, Errors, Limits
from ottla.pipelines.structs import Problem, read_struct

EXCLUDED_TOPICS = (r"mm2.*\.internal", r".*\.replica", r"__.*")
EXCLUDED_GROUPS = (r"console-consumer-.*", r"connect-.*", r"__.*", r"ottla\..*")
EXCLUDED_SETTINGS = (
    "follower.replication.throttled.replicas", "leader.replication.throttled.replicas",
    "message.timestamp.difference.max.ms", "message.timestamp.before.max.ms", "message.timestamp.after.max.ms",
    "message.timestamp.type", "unclean.leader.election.enable", "min.insync.replicas",
)  # fmt: skip
"""What MirrorMaker 2 leaves out: these belong to a cluster and not to the data."""

NOT_OF_STANDBY: Mapping[str, str] = {
    "provenance": "records stay as they are; loops are known by the topics' mirror.source",
    "compression": "batches stay as they are",
    "start": "a standby begins where the source's log does",
    "heartbeats": "records stay as they are; `ottla mirror status` tells how the flow gets on",
    "heartbeat_interval": "there are no heartbeats",
}
"""Keys that mean nothing where offsets are kept, and why."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}")


class Flow(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """Topics of one cluster on their way to another."""

    source: str = msgspec.field(name="from")
    target: str = msgspec.field(name="to")
    topics: str | list[str] = ".*"
    """Patterns; topics that come to match are found while it runs."""
    exclude: tuple[str, ...] = EXCLUDED_TOPICS
    names: Literal["prefix", "keep"] = "prefix"
    """`east.orders`, or `orders`."""
    offsets: Literal["translate", "keep"] = "translate"
    """`keep`: a standby. Batches go to an Ottla cluster as they are, and its topics are read-only until promoted."""
    start: Literal["earliest", "latest"] = "earliest"
    on_loss: Literal["stop", "continue"] = "stop"
    """What to do if the source has been trimmed, truncated or made anew before it was read."""
    groups: str | list[str] = ".*"
    exclude_groups: tuple[str, ...] = EXCLUDED_GROUPS
    group_offsets: Literal["write", "checkpoints", "off"] = "write"
    """`write`: to groups of the target that have no members, and as checkpoints."""
    group_interval: str = "10 seconds"
    settings: bool = True
    """Whether settings of topics are kept in step."""
    exclude_settings: tuple[str, ...] = EXCLUDED_SETTINGS
    settings_interval: str = "10 seconds"
    acls: bool = True
    """Whether rules for the topics by name are copied, as often as settings."""
    throttle: str | int | None = None
    """At most so many bytes a second, `20 MB` for instance."""
    limits: Limits | None = None
    """The flow's own in place of the mirror's."""
    replication_factor: int | None = None
    """Of topics that are made; by default the target's brokers decide."""
    provenance: bool = True
    """A header on each record that says which cluster it came from. Loops under kept names are known by it alone."""
    heartbeats: bool = True
    heartbeat_interval: str = "1 second"
    compression: Literal["none", "gzip", "snappy", "lz4", "zstd"] = "lz4"

    @property
    def name(self) -> str:
        return f"{self.source}-{self.target}"

    @property
    def is_standby(self) -> bool:
        return self.offsets == "keep"

    @property
    def own_settings(self) -> tuple[str, ...] | None:
        """What a copy does not get of the source's settings; None for all of them."""
        return self.exclude_settings if self.settings else None

    @property
    def bytes_per_second(self) -> int | None:
        return None if self.throttle is None else bytes_of(self.throttle)


class Mirror(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    name: str
    description: str = ""
    clusters: dict[str, ClusterEntry]
    flows: list[Flow]
    limits: Limits = Limits()
    errors: Errors = Errors(restart="always")


def patterns(given: str | Sequence[str]) -> list[str]:
    return [given] if isinstance(given, str) else [*given]


def load_mirror(path: Path) -> Mirror:
    """InvalidPipeline lists all that is wrong."""
    return check_mirror(load(path))


def check_mirror(document: Document) -> Mirror:
    mirror, problems = read_mirror(document.values)
    if mirror is None or problems:
        raise InvalidPipeline(
            str(document.path), [f"{document.where(place)}: {text}" if place else text for place, text in problems]
        )
    return mirror


def read_mirror(values: Any) -> tuple[Mirror | None, list[Problem]]:
    problems: list[Problem] = []
    if isinstance(values, Mapping) and isinstance(values.get("flows"), list):
        for number, flow in enumerate(values["flows"]):
            problems += read_struct(flow, Flow, f"flows[{number}]", "a flow")[1]
            problems += _meaningless(flow, f"flows[{number}]")
    if problems:
        return None, problems
    mirror, problems = read_struct(values, Mirror, "", "a mirror")
    if mirror is None:
        return None, problems
    problems += _wrong(mirror)
    flows = [
        msgspec.structs.replace(flow, heartbeats=False, provenance=False) if flow.is_standby else flow
        for flow in mirror.flows
    ]
    return msgspec.structs.replace(mirror, flows=flows), problems


def _meaningless(flow: Any, place: str) -> list[Problem]:
    if not isinstance(flow, Mapping) or flow.get("offsets") != "keep":
        return []
    return [
        (f"{place}.{key}", f"means nothing with `offsets: keep`, leave it out: {why}")
        for key, why in NOT_OF_STANDBY.items()
        if key in flow
    ]


def _wrong(mirror: Mirror) -> list[Problem]:
    problems: list[Problem] = []
    if not _NAME.fullmatch(mirror.name):
        problems.append(("name", "wants letters, digits, `_` and `-`: it names folders and groups"))
    for name, cluster in mirror.clusters.items():
        if not _NAME.fullmatch(name):
            problems.append((f"clusters.{name}", "wants letters, digits, `_` and `-`: it begins names of topics"))
        problems += client_problems(cluster.client, f"clusters.{name}.client")
    if not mirror.flows:
        problems.append(("flows", "there is none: what goes where?"))
    if mirror.errors.dead_letter is not None:
        problems.append(("errors.dead_letter", "records are copied as they are: there are no dead letters"))
    pairs = [(flow.source, flow.target) for flow in mirror.flows]
    for number, flow in enumerate(mirror.flows):
        place = f"flows[{number}]"
        if (flow.source, flow.target) in pairs[:number]:
            problems.append((place, f"there is a flow from `{flow.source}` to `{flow.target}` already"))
        problems += [(f"{place}.{key}", text) for key, text in _wrong_flow(flow, sorted(mirror.clusters))]
    return problems


def _wrong_standby(flow: Flow) -> list[Problem]:
    problems: list[Problem] = []
    if flow.names != "keep":
        problems.append(("names", "`offsets: keep` wants `names: keep`: clients go on with the same topics"))
    if flow.group_offsets == "checkpoints":
        problems.append(("group_offsets", "offsets are the same at both ends: `write` them, or `off`"))
    return problems


def _wrong_flow(flow: Flow, clusters: list[str]) -> list[Problem]:
    problems: list[Problem] = []
    for key, name in (("from", flow.source), ("to", flow.target)):
        if name not in clusters:
            problems.append((key, f"there is no cluster `{name}`{hint(name, clusters)}"))
    if flow.source == flow.target:
        problems.append(("to", "a flow goes from one cluster to another"))
    given = {
        "topics": patterns(flow.topics), "exclude": [*flow.exclude],
        "groups": patterns(flow.groups), "exclude_groups": [*flow.exclude_groups],
    }  # fmt: skip
    for key, found in given.items():
        for pattern in found:
            try:
                re.compile(pattern)
            except re.error as error:
                problems.append((key, f"`{pattern}` is not a regular expression: {error}"))
    if flow.is_standby:
        problems += _wrong_standby(flow)
    if flow.names == "keep" and not flow.provenance:
        problems.append(("provenance", "under kept names it is what loops are known by: leave it on"))
    if flow.replication_factor is not None and flow.replication_factor < 1:
        problems.append(("replication_factor", "wants at least 1"))
    for key in ("group_interval", "settings_interval", "heartbeat_interval", "throttle"):
        given_here = getattr(flow, key)
        try:
            if given_here is not None:
                bytes_of(given_here) if key == "throttle" else seconds_of(given_here)
        except ValueError as error:
            problems.append((key, str(error)))
    return problems
