"""Which topics a flow takes, and what they are called at the other end. Pure.

Names are MirrorMaker 2's: `east.orders` in west is east's `orders`. A topic that has come from the target, by its
name, does not go back there. Only clusters of the mirror count as prefixes: MirrorMaker takes every word before a dot
for one, and leaves local topics out without a word.
"""

import re
from collections.abc import Iterable, Sequence

from ottla.pipelines.mirror.spec import Flow, patterns

SEPARATOR = "."
HEARTBEATS = "heartbeats"
INTERNAL = (r"mm2-.*\.internal", r".*\.checkpoints\.internal", r"ottla-offset-map\..*\.internal", r"__.*")
"""Never mirrored, whatever a file says."""


def map_topic(flow: Flow) -> str:
    """In the target: where each record went."""
    return f"ottla-offset-map.{flow.source}.internal"


def checkpoints_topic(flow: Flow) -> str:
    """In the target, as MirrorMaker 2 has it."""
    return f"{flow.source}.checkpoints.internal"


def offset_syncs_topic(flow: Flow) -> str:
    """In the source, as MirrorMaker 2 has it."""
    return f"mm2-offset-syncs.{flow.target}.internal"


def is_heartbeats(topic: str, clusters: Iterable[str]) -> bool:
    return _local_name(topic, clusters) == HEARTBEATS


def heartbeats_pattern(clusters: Iterable[str]) -> str:
    """For Spark: the same as `is_heartbeats`."""
    hop = "|".join(re.escape(name) for name in clusters)
    return rf"^(?:(?:{hop})\.)*{HEARTBEATS}$"


def remote_name(flow: Flow, topic: str, clusters: Iterable[str]) -> str:
    """What a topic of the source is called in the target. Heartbeats have a prefix always: it is what they tell."""
    if flow.names == "keep" and not is_heartbeats(topic, clusters):
        return topic
    return f"{flow.source}{SEPARATOR}{topic}"


def subscription(flow: Flow, clusters: Sequence[str]) -> str:
    """The pattern of the topics that the flow reads."""
    hop = "|".join(re.escape(name) for name in clusters)
    back = rf"(?:(?:{hop})\.)*{re.escape(flow.target)}\..*"
    never = [*INTERNAL, back]
    beats = rf"(?!(?:{back})\Z)(?:(?:{hop})\.)*{HEARTBEATS}"
    left_out = _any([*flow.exclude, *never, rf"(?:(?:{hop})\.)*{HEARTBEATS}"])
    wanted = rf"(?!{left_out}\Z){_any(patterns(flow.topics))}"
    return f"(?:{wanted}|{beats})" if flow.heartbeats else wanted


def takes(flow: Flow, topic: str, clusters: Sequence[str]) -> bool:
    return re.fullmatch(subscription(flow, clusters), topic) is not None


def refused_loops(flow: Flow, topics: Iterable[str], clusters: Sequence[str]) -> list[str]:
    """Topics that the file wants and that would go back to where they come from, to be told."""
    wanted = re.compile(_any(patterns(flow.topics)))
    left_out = re.compile(_any([*flow.exclude, *INTERNAL]))
    return sorted(
        topic
        for topic in topics
        if flow.target in _prefixes(topic, clusters) and wanted.fullmatch(topic) and not left_out.fullmatch(topic)
    )


def wants_group(flow: Flow, group: str) -> bool:
    left_out = bool(flow.exclude_groups) and re.fullmatch(_any(flow.exclude_groups), group) is not None
    return not left_out and re.fullmatch(_any(patterns(flow.groups)), group) is not None


def _any(given: Sequence[str]) -> str:
    return "(?:" + "|".join(f"(?:{pattern})" for pattern in given) + ")"


def _prefixes(topic: str, clusters: Iterable[str]) -> list[str]:
    """The clusters that a topic has come through, by its name, the last one first."""
    known = set(clusters)
    found: list[str] = []
    while True:
        first, dot, rest = topic.partition(SEPARATOR)
        if not dot or first not in known:
            return found
        found.append(first)
        topic = rest


def _local_name(topic: str, clusters: Iterable[str]) -> str:
    return topic.split(SEPARATOR, len(_prefixes(topic, clusters)))[-1]
