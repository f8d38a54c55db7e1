"""All topics, and one of them: partitions, skew, settings, consumers."""

import asyncio
from typing import Any, NamedTuple

from ottla.client import admin, offsets, transactions
from ottla.client.admin import Resource, ResourceType
from ottla.client.offsets import EARLIEST, FoundOffset
from ottla.console import paging
from ottla.console.asking import Ask, NotThere
from ottla.console.commands import command
from ottla.console.pages.configs import settings_of
from ottla.console.snapshot import Snapshot, TopicRow
from ottla.model.names import TopicPartition

PARTITIONS_SHOWN = 200
PRODUCERS_SHOWN = 100
PARTITIONS_ASKED_FOR_PRODUCERS = 20

_KEYS: dict[str, paging.Key] = {
    "name": lambda row: row.name,
    "partitions": lambda row: row.partitions,
    "replication": lambda row: row.replication,
    "records": lambda row: row.end_offsets,
    "size": lambda row: row.size_bytes,
    "speed": lambda row: row.per_second,
    "groups": lambda row: row.groups,
    "trouble": lambda row: row.offline * 1_000_000 + row.under_replicated,
}


async def list_topics(ask: Ask) -> dict[str, Any]:
    found = await ask.snapshot()
    shown = [row for row in found.topics if "internal" in ask.fields or not row.internal]
    page = paging.cut(shown, ask.fields.mapping(), text=lambda row: row.name, keys=_KEYS, sort="name")
    return {
        "items": page.items,
        **page.facts(),
        "hidden": len(found.topics) - len(shown),
        "_page": page,
        "_speeds": {row.name: ask.watched.history.speed_of(row.name) for row in page.items},
        "_most_bytes": max((row.size_bytes or 0 for row in page.items), default=0),
        "_command": command(ask, "kafka-topics", "--list"),
    }


class PartitionRow(NamedTuple):
    partition: int
    leader: int | None
    replicas: tuple[int, ...]
    in_sync: tuple[int, ...]
    start: int | None
    end: int | None
    records: int | None
    size_bytes: int | None


def topic_row(found: Snapshot, name: str) -> TopicRow:
    row = next((row for row in found.topics if row.name == name), None)
    if row is None:
        raise NotThere(f"there is no topic {name}")
    return row


async def show(ask: Ask) -> dict[str, Any]:
    name = ask.names["topic"]
    found = await ask.snapshot()
    if name not in found.numbers:  # made a moment ago, perhaps
        ask.watched.invalidate()
        found = await ask.snapshot()
    row = topic_row(found, name)
    resource = Resource(ResourceType.TOPIC, name)
    page = paging.cut(
        found.numbers[name],
        ask.fields.mapping() | {"q": "", "sort": ""},
        text=str,
        keys={"partition": lambda number: number},
        sort="partition",
    )
    numbers = page.items
    wanted = [TopicPartition(name, number) for number in numbers]
    starts, told = await asyncio.gather(
        offsets.list_offsets(ask.watched.cluster, dict.fromkeys(wanted, EARLIEST)),
        admin.describe_configs(ask.watched.cluster, [resource]),
    )
    settings = settings_of(told[resource])
    rows = [_partition(found, each, starts.get(each)) for each in wanted]
    values = {each.name: each.value or "" for each in settings}
    return {
        "topic": row,
        "partitions": rows,
        **page.facts(),
        "_page": page,
        "_most": {
            "size_bytes": max((each.size_bytes or 0 for each in rows), default=0),
            "records": max((each.records or 0 for each in rows), default=0),
        },
        "leaders": leaders_of(found, name),
        "settings": settings,
        "cleanup": values.get("cleanup.policy", ""),
        "retention": in_words(values),
        "groups": [_reader(found, group, name) for group in found.readers.get(name, ())][:PARTITIONS_SHOWN],
        "speeds": ask.watched.history.speed_of(name),
        "_command": command(ask, "kafka-topics", "--describe", "--topic", name),
    }


def _partition(found: Snapshot, each: TopicPartition, start: object) -> PartitionRow:
    place = found.look.places[each]
    end = found.look.reading.ends.get(each)
    first = start.offset if isinstance(start, FoundOffset) else None
    return PartitionRow(
        each.partition,
        place.leader,
        place.replicas,
        place.in_sync,
        first,
        end,
        max(0, end - first) if end is not None and first is not None else None,
        found.disks.size_if_told(each, place.leader),
    )


def leaders_of(found: Snapshot, topic: str) -> list[dict[str, int]]:
    """How the partitions of a topic are spread over the brokers."""
    led: dict[int, int] = {}
    held: dict[int, int] = {}
    bytes_held: dict[int, int] = {}
    for number in found.numbers[topic]:
        each = TopicPartition(topic, number)
        place = found.look.places[each]
        if place.leader is not None:
            led[place.leader] = led.get(place.leader, 0) + 1
        for broker in place.replicas:
            held[broker] = held.get(broker, 0) + 1
            bytes_held[broker] = bytes_held.get(broker, 0) + found.disks.size(each, broker)
    return [
        {
            "broker": broker,
            "leaders": led.get(broker, 0),
            "replicas": held[broker],
            "size_bytes": bytes_held[broker],
        }
        for broker in sorted(held)
    ]


def _reader(found: Snapshot, group: str, topic: str) -> dict[str, Any]:
    judged = found.judged[group]
    own = [each for each in judged.partitions if each.topic == topic]
    return {
        "group": group,
        "state": judged.state or "Empty",
        "status": judged.status.name,
        "lag": sum(each.current_lag for each in own),
        "members": judged.members,
    }


def in_words(values: dict[str, str]) -> str:
    """What becomes of old records, by the topic's settings."""
    policy = {each.strip() for each in values.get("cleanup.policy", "delete").split(",")}
    words = []
    if "compact" in policy:
        words.append(_compacted(values))
    if "delete" in policy:
        words.append(_deleted(values))
    return "; ".join(words) or "nothing is ever deleted"


def _compacted(values: dict[str, str]) -> str:
    words = "of records with the same key the newest stays"
    if (ratio := _number(values.get("min.cleanable.dirty.ratio"))) is not None:
        words += f", as soon as {ratio:.0%} of a log is new"
    if (kept := _number(values.get("delete.retention.ms"))) is not None:
        words += f", and tombstones go {_limit(int(kept), 'ms')}"
    return words


def _number(text: str | None) -> float | None:
    try:
        return float(text or "")
    except ValueError:
        return None


def _deleted(values: dict[str, str]) -> str:
    limits = []
    for name, unit in (("retention.ms", "ms"), ("retention.bytes", "bytes")):
        text = values.get(name, "-1")
        if text.lstrip("-").isdigit() and int(text) >= 0:
            limits.append(_limit(int(text), unit))
    return f"records are deleted {' or '.join(limits)}" if limits else "records are kept for ever"


def _limit(value: int, unit: str) -> str:
    if unit == "bytes":
        return f"beyond {value:,} bytes of a partition"
    days = value / 86_400_000
    number, unit = (days, "day") if days >= 1 else (value / 3_600_000, "hour")
    return f"after {number:g} {unit}{'' if number == 1 else 's'}"


async def show_producers(ask: Ask) -> dict[str, Any]:
    """Idempotent and transactional ones: others leave no trace at the brokers."""
    name = ask.names["topic"]
    found = await ask.snapshot()
    topic_row(found, name)
    wanted = [TopicPartition(name, number) for number in found.numbers[name]][:PARTITIONS_ASKED_FOR_PRODUCERS]
    told = await transactions.describe_producers(ask.watched.cluster, wanted)
    rows = [
        {
            "partition": each.partition,
            "producer_id": state.producer_id,
            "epoch": state.producer_epoch,
            "last_sequence": state.last_sequence,
            "last_timestamp": state.last_timestamp,
            "in_transaction": state.current_txn_start_offset >= 0,
        }
        for each, states in told.items()
        if isinstance(states, list)
        for state in states
    ]
    rows.sort(key=lambda row: (-int(row["last_timestamp"]), row["partition"]))
    return {"topic": name, "producers": rows[:PRODUCERS_SHOWN], "asked": len(wanted), "of": len(found.numbers[name])}
