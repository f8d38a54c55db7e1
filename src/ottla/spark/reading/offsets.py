"""Offsets of a read, decided without I/O: their JSON, what a micro-batch takes, and how it is divided among tasks.

The JSON is that of Spark's Kafka connector, `{"topic":{"0":23,"1":345}}`. An offset in a checkpoint may carry notes
besides, under keys that no topic can have. `#from` holds where this batch begins in partitions for which the offset
before it does not say so: in all of them in the first batch (Spark keeps no starting offset, and "latest" means
something else after a restart), in new ones, and in those of a topic that was made again. `#topics` holds the ids of
the topics, by which one that was deleted and made again is known also by a query that did not run meanwhile. `#group`
holds the name that was generated for the query's group.
"""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple
from uuid import UUID

from ottla.model.names import TopicPartition
from ottla.model.wire_numbers import EARLIEST as EARLIEST  # noqa: PLC0414 (known from here)
from ottla.model.wire_numbers import LATEST as LATEST  # noqa: PLC0414 (known from here)
from ottla.spark.errors import InvalidOption

Offsets = Mapping[TopicPartition, int]
OffsetJson = dict[str, dict[str, int]]

TopicIds = Mapping[str, UUID]

NO_OFFSETS: Offsets = {}
NO_TOPICS: TopicIds = {}

ROWS_PER_TASK_MIN = 2_500

_FROM = "#from"
_TOPICS = "#topics"
_GROUP = "#group"


class OffsetRange(NamedTuple):
    """Offsets from `start` up to, not including, `end`."""

    partition: TopicPartition
    start: int
    end: int

    @property
    def size(self) -> int:
        return self.end - self.start


class StreamOffset(NamedTuple):
    """Where a stream stands behind a batch, with the notes that a replay of this batch needs."""

    offsets: Offsets
    begins: Offsets = NO_OFFSETS
    group: str | None = None
    topics: TopicIds = NO_TOPICS
    """Empty where an older version wrote the checkpoint, or the brokers know no ids."""

    def to_json(self) -> dict[str, object]:
        """For Spark, which takes two offsets for the same if their text is: the order must not vary."""
        document: dict[str, object] = dict(_grouped(self.offsets))
        if self.begins:
            document[_FROM] = _grouped(self.begins)
        if self.topics:
            document[_TOPICS] = {topic: str(self.topics[topic]) for topic in sorted(self.topics)}
        if self.group is not None:
            document[_GROUP] = self.group
        return document

    @classmethod
    def from_json(cls, document: Mapping[str, object]) -> "StreamOffset":
        plain = {topic: partitions for topic, partitions in document.items() if not topic.startswith("#")}
        group = document.get(_GROUP)
        return cls(
            offsets_from_json(plain, "the offset in the checkpoint"),
            offsets_from_json(document.get(_FROM, {}), "the offset in the checkpoint"),
            group if isinstance(group, str) else None,
            _topics_from_json(document.get(_TOPICS, {})),
        )


def _topics_from_json(document: object) -> TopicIds:
    try:
        return {topic: UUID(text) for topic, text in document.items()}  # type: ignore[attr-defined]
    except (AttributeError, ValueError):
        raise InvalidOption(f"the offset in the checkpoint has ids of topics that are none: `{document}`") from None


def read_checkpointed(text: str) -> dict[TopicPartition, int]:
    """The offsets in one line of a checkpoint's offset log, without notes."""
    return dict(StreamOffset.from_json(json.loads(text)).offsets)


def parse_offsets(text: str, name: str) -> dict[TopicPartition, int]:
    """Offsets or timestamps that a user wrote: `{"topicA":{"0":23,"1":-1},"topicB":{"0":-2}}`."""
    try:
        document = json.loads(text)
    except ValueError:
        raise InvalidOption(_expected(name, text)) from None
    return offsets_from_json(document, name)


def offsets_from_json(document: object, name: str) -> dict[TopicPartition, int]:
    if not isinstance(document, Mapping):
        raise InvalidOption(_expected(name, document))
    offsets: dict[TopicPartition, int] = {}
    for topic, partitions in document.items():
        if not isinstance(partitions, Mapping):
            raise InvalidOption(_expected(name, document))
        for number, offset in partitions.items():
            if not str(number).isdecimal() or not isinstance(offset, int) or isinstance(offset, bool):
                raise InvalidOption(_expected(name, document))
            offsets[TopicPartition(topic, int(number))] = offset
    return offsets


def parse_assignment(text: str) -> list[TopicPartition]:
    """The option `assign`: `{"topicA":[0,1],"topicB":[2,4]}`."""
    expected = 'assign wants JSON such as {"topicA":[0,1],"topicB":[2,4]}'
    try:
        document = json.loads(text)
    except ValueError:
        raise InvalidOption(f"{expected}, not `{text}`") from None
    if not isinstance(document, Mapping) or not document:
        raise InvalidOption(f"{expected}, not `{text}`")
    partitions = []
    for topic, numbers in document.items():
        if not isinstance(numbers, list) or not all(type(number) is int and number >= 0 for number in numbers):
            raise InvalidOption(f"{expected}; `{topic}` has {json.dumps(numbers)}")
        partitions += [TopicPartition(topic, number) for number in numbers]
    return sorted(set(partitions))


def limit_rows(begins: Offsets, latest: Offsets, rows_max: int) -> dict[TopicPartition, int]:
    """Ends that take about `rows_max` offsets, from each partition its share of what is waiting, but never nothing."""
    waiting = {partition: end - begins[partition] for partition, end in latest.items() if end > begins[partition]}
    total = sum(waiting.values())
    if total <= rows_max:
        return dict(latest)
    ends = dict(latest)
    for partition, size in waiting.items():
        share = rows_max * size / total
        ends[partition] = min(latest[partition], begins[partition] + max(1, math.floor(share)))
    return ends


def waiting_rows(begins: Offsets, latest: Offsets) -> int:
    return sum(max(0, end - begins[partition]) for partition, end in latest.items())


def divide(
    ranges: Iterable[OffsetRange], *, parts_min: int | None, rows_per_part_max: int | None = None
) -> list[OffsetRange]:
    """One range per task. Big ones are cut so that there are about `parts_min`; empty ones need no task."""
    whole = [found for found in ranges if found.size > 0]
    if rows_per_part_max is not None:
        whole = [part for found in whole for part in _cut(found, math.ceil(found.size / rows_per_part_max))]
    if parts_min is None or len(whole) >= parts_min:
        return whole
    total = sum(found.size for found in whole)
    small = [found for found in whole if _parts(found.size, total, parts_min) == 1]
    # The small ones take a task each whatever their size: the others share what is left.
    left_parts = max(1, parts_min - len(small))
    left_rows = total - sum(found.size for found in small)
    uncut = set(small)
    return [
        part
        for found in whole
        for part in _cut(found, 1 if found in uncut else _parts(found.size, left_rows, left_parts))
    ]


def gather(parts: Sequence[OffsetRange]) -> list[tuple[OffsetRange, ...]]:
    """Small ranges share a task, as evenly as can be: a task takes a tenth of a second even to read nothing."""
    total = sum(part.size for part in parts)
    tasks: list[list[OffsetRange]] = [[] for _ in range(max(1, min(len(parts), round(total / ROWS_PER_TASK_MIN))))]
    sizes = [0] * len(tasks)
    for part in sorted(parts, key=lambda part: -part.size):
        least = sizes.index(min(sizes))
        tasks[least].append(part)
        sizes[least] += part.size
    return [tuple(sorted(task)) for task in tasks if task]


def _parts(size: int, total: int, parts: int) -> int:
    return max(1, math.floor(size * parts / total + 0.5))


def _cut(found: OffsetRange, parts: int) -> list[OffsetRange]:
    parts = min(parts, found.size)
    edges = [found.start + found.size * number // parts for number in range(parts + 1)]
    return [OffsetRange(found.partition, start, end) for start, end in pairwise(edges) if end > start]


def missing_and_surplus(given: Iterable[TopicPartition], existing: Iterable[TopicPartition], name: str) -> str | None:
    """Spark's rule: whoever gives offsets gives them for every partition, so that none is read by surprise."""
    given_set, existing_set = set(given), set(existing)
    missing, surplus = sorted(existing_set - given_set), sorted(given_set - existing_set)
    if missing:
        return f"{name} must name every partition that is read; it lacks {_listed(missing)} (-2: earliest, -1: latest)"
    if surplus:
        return f"{name} names {_listed(surplus)}, which is not among the partitions that are read"
    return None


def _listed(partitions: Sequence[TopicPartition], shown: int = 5) -> str:
    more = f" and {len(partitions) - shown} more" if len(partitions) > shown else ""
    return ", ".join(str(partition) for partition in partitions[:shown]) + more


def _grouped(offsets: Offsets) -> OffsetJson:
    document: OffsetJson = {}
    for topic, number in sorted(offsets):
        document.setdefault(topic, {})[str(number)] = offsets[TopicPartition(topic, number)]
    return document


def _expected(name: str, got: object) -> str:
    shown = got if isinstance(got, str) else json.dumps(got)
    return f'{name} wants JSON such as {{"topicA":{{"0":23,"1":-1}},"topicB":{{"0":-2}}}}, not `{shown}`'
