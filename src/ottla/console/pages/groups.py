"""Groups: who is behind, by how much in records and in time, and setting their offsets with a look before."""

import time
from typing import Any, NamedTuple

from ottla.client import group_resets, groups
from ottla.client.group_resets import CannotReset, Target
from ottla.console import paging
from ottla.console.asking import Ask, BadInput, Done, NotThere
from ottla.console.commands import command
from ottla.console.snapshot import RIPE_LOOKS, Snapshot
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.names import TopicPartition, by_topic

WORDS = {
    "OK": "keeps up",
    "WARN": "reads, and falls behind",
    "ERR": "a partition has stopped, stalled or gone back",
    "STOP": "does not commit any more",
    "STALL": "lives and commits, and does not move",
    "REWIND": "went back, and has not caught up",
    "NOTFOUND": "nothing is known yet",
}
_ORDER = {name: number for number, name in enumerate(("OK", "NOTFOUND", "WARN", "ERR"))}
_KEYS: dict[str, paging.Key] = {
    "group": lambda row: row.group,
    "state": lambda row: row.state,
    "status": lambda row: _ORDER.get(row.status, 0),
    "lag": lambda row: row.lag,
    "waiting": lambda row: row.waiting_s,
    "members": lambda row: row.members,
}
MEMBERS_SHOWN = 100
CHANGES_SHOWN = 200
TARGETS = {
    "earliest": "the first record there is",
    "latest": "the end",
    "current": "where it stands now",
    "offset": "this offset",
    "shift": "so many records on, or back (negative)",
    "datetime": "the first record at or after a moment",
    "duration": "what was current so long ago",
}


class LagRow(NamedTuple):
    topic: str
    partition: int
    committed: int
    end: int | None
    lag: int
    status: str
    waiting_s: float | None
    caught_up_s: float | None
    member: str
    host: str


async def list_groups(ask: Ask) -> dict[str, Any]:
    found = await ask.snapshot()
    only = ask.fields.get("status")
    rows = [row for row in found.groups if not only or only in (row.status, row.worst)]
    page = paging.cut(
        rows, ask.fields.mapping(), text=lambda row: f"{row.group} {' '.join(row.topics[:50])}", keys=_KEYS, sort="-lag"
    )
    return {
        "items": page.items,
        **page.facts(),
        "status": only,
        "_page": page,
        "_words": WORDS,
        "_lags": {row.group: ask.watched.history.lag_of(row.group) for row in page.items},
        "_command": command(ask, "kafka-consumer-groups", "--list"),
    }


async def show(ask: Ask) -> dict[str, Any]:
    name = ask.fields.need("id", "the name of a group (id)")
    found = await ask.snapshot()
    described = await _described(ask, name)
    judged = found.judged.get(name)
    if described is None and judged is None:
        raise NotThere(f"there is no group {name}")
    rows = _lag_rows(found, name)
    page = paging.cut(
        rows,
        ask.fields.mapping(),
        text=lambda row: f"{row.topic} {row.partition} {row.member}",
        keys={"topic": lambda row: (row.topic, row.partition), "lag": lambda row: row.lag},
        sort="topic",
    )
    kept = ask.console.kept.get((ask.watched.name, name))
    return {
        "group": name,
        "state": described.state if described is not None else "Empty",
        "type": described.type if described is not None else "",
        "assignor": described.assignor if described is not None else "",
        "epoch": described.epoch if described is not None else None,
        "coordinator": described.coordinator.node_id if described is not None else None,
        "members": [
            {
                "member": member.member_id,
                "client": member.client_id,
                "host": member.host.removeprefix("/"),
                "instance": member.instance_id,
                "partitions": [
                    f"{topic}: {_numbers(each)}"
                    for topic, each in by_topic(member.assignment).items()
                    if ask.caller.sees(topic)
                ],
            }
            for member in (described.members if described is not None else ())[:MEMBERS_SHOWN]
        ],
        "member_count": len(described.members) if described is not None else 0,
        "status": judged.status.name if judged is not None else "NOTFOUND",
        "status_words": WORDS[judged.status.name if judged is not None else "NOTFOUND"],
        "certain": found.number >= RIPE_LOOKS,
        "lag": judged.total_lag if judged is not None else 0,
        "lags": ask.watched.history.lag_of(name),
        "items": page.items,
        **page.facts(),
        "topics": sorted({row.topic for row in rows}),
        "undo": None if kept is None else {"at_ms": kept["at_ms"], "partitions": len(kept["offsets"])},
        "_page": page,
        "_most_lag": max((row.lag for row in page.items), default=0),
        "_targets": TARGETS,
        "_inactive": described is None or described.state in group_resets.INACTIVE,
        "_command": command(ask, "kafka-consumer-groups", "--describe", "--group", name),
        "_delete": command(ask, "kafka-consumer-groups", "--delete", "--group", name),
    }


def _numbers(numbers: list[int]) -> str:
    shown = ", ".join(map(str, numbers[:30]))
    return shown + (f" and {len(numbers) - 30} more" if len(numbers) > 30 else "")


async def _described(ask: Ask, name: str) -> groups.GroupDescription | None:
    try:
        found = await groups.describe_group(ask.watched.cluster, name)
    except ApiError as error:
        if error.code == ErrorCode.GROUP_ID_NOT_FOUND:
            return None
        raise
    return None if found.state == "Dead" else found


def _lag_rows(found: Snapshot, name: str) -> list[LagRow]:
    judged = found.judged.get(name)
    if judged is None:
        return []
    return [
        LagRow(
            each.topic,
            each.partition,
            each.end.offset if each.end is not None else -1,
            found.look.reading.ends.get(TopicPartition(each.topic, each.partition)),
            each.current_lag,
            each.status.name,
            each.waiting_s,
            each.caught_up_s,
            each.owner.client_id if each.owner else "",
            each.owner.host if each.owner else "",
        )
        for each in judged.partitions
    ]


# Offsets


async def preview_reset(ask: Ask) -> dict[str, Any]:
    """What a reset would do, by the rules of the tool. Changes nothing."""
    name = ask.fields.need("id", "the name of a group (id)")
    committed = await _committed(ask, name)
    notes: list[str] = []
    plan = await _plan(ask, committed, notes)
    state = await _described(ask, name)
    active = state is not None and state.state not in group_resets.INACTIVE
    ends = (await ask.snapshot()).look.reading.ends
    return {
        "group": name,
        "changes": [
            {
                "topic": at.topic,
                "partition": at.partition,
                "old": committed.get(at),
                "new": offset,
                "difference": offset - committed[at] if at in committed else None,
                "lag_after": max(0, ends[at] - offset) if at in ends else None,
            }
            for at, offset in sorted(plan.items())[: CHANGES_SHOWN if ask.for_page else None]
        ],
        "count": len(plan),
        "notes": notes,
        "active": active,
        "state": state.state if state is not None else "",
        "fields": _said(ask),
        "_targets": TARGETS,
        "_command": _reset_command(ask, name),
    }


async def reset(ask: Ask) -> Done:
    name = ask.fields.need("id", "the name of a group (id)")
    cluster = ask.watched.cluster
    await group_resets.check_inactive(cluster, name)
    committed = await _committed(ask, name)
    plan = await _plan(ask, committed, [])
    refused = await groups.commit_offsets(cluster, name, plan)
    _keep(ask, name, committed, plan)
    words = f"{len(plan) - len(refused)} offsets of group {name} were set"
    if refused:
        words += f"; {len(refused)} were refused: {next(iter(refused.values())).name}"
    return Done(words, ask.link("/group", id=name), {"set": len(plan) - len(refused), "refused": len(refused)}, name)


def _keep(ask: Ask, name: str, committed: dict[TopicPartition, int], plan: dict[TopicPartition, int]) -> None:
    ask.console.kept[ask.watched.name, name] = {
        "at_ms": int(time.time() * 1000),
        "offsets": {at: committed[at] for at in plan if at in committed},
        "without": [at for at in plan if at not in committed],
    }


async def undo_reset(ask: Ask) -> Done:
    """The offsets as they were before the last reset that was made here."""
    name = ask.fields.need("id", "the name of a group (id)")
    kept = ask.console.kept.get((ask.watched.name, name))
    if kept is None:
        raise NotThere(f"nothing is kept that could be undone for group {name}")
    await group_resets.check_inactive(ask.watched.cluster, name)
    if kept["offsets"]:
        await groups.commit_offsets(ask.watched.cluster, name, kept["offsets"])
    if kept["without"]:
        await groups.delete_offsets(ask.watched.cluster, name, kept["without"])
    del ask.console.kept[ask.watched.name, name]
    return Done(f"the offsets of group {name} are as they were before", ask.link("/group", id=name), {}, name)


async def delete(ask: Ask) -> Done:
    name = ask.fields.need("id", "the name of a group (id)")
    ask.fields.confirmed(name, "delete the group")
    await groups.delete_group(ask.watched.cluster, name)
    return Done(f"group {name} is deleted", ask.link("/groups"), {}, name)


async def _committed(ask: Ask, name: str) -> dict[TopicPartition, int]:
    found = await groups.group_offsets(ask.watched.cluster, name)
    return {at: each.offset for at, each in found.items() if ask.caller.sees(at.topic)}


def _said(ask: Ask) -> dict[str, str]:
    return {name: ask.fields.get(name) for name in ("id", "to", "value", "topic", "partitions")}


async def _plan(ask: Ask, committed: dict[TopicPartition, int], notes: list[str]) -> dict[TopicPartition, int]:
    found = await ask.snapshot()
    topic = ask.fields.get("topic").strip()
    if not topic:
        partitions = sorted(committed)
    elif topic not in found.numbers:
        raise NotThere(f"there is no topic {topic}")
    else:
        wanted = _wanted_numbers(ask.fields.get("partitions"), found.numbers[topic])
        partitions = [TopicPartition(topic, number) for number in wanted]
    if not partitions:
        raise BadInput("the group has no offsets to set: name a topic")
    return await group_resets.plan(ask.watched.cluster, committed, partitions, _target(ask), notes)


def _wanted_numbers(text: str, known: tuple[int, ...]) -> list[int]:
    if not text.strip():
        return list(known)
    try:
        wanted = sorted({int(each) for each in text.split(",") if each.strip()})
    except ValueError:
        raise BadInput(f"partitions are numbers such as 0,1,2; not `{text}`") from None
    unknown = [each for each in wanted if each not in known]
    if unknown:
        raise BadInput(f"the topic has no partition {unknown[0]}")
    return wanted


def _target(ask: Ask) -> Target:
    kind, value = ask.fields.get("to"), ask.fields.get("value").strip()
    if kind not in TARGETS:
        raise BadInput(f"say where to: one of {', '.join(TARGETS)}")
    if kind in ("earliest", "latest", "current"):
        return Target(earliest=kind == "earliest", latest=kind == "latest", current=kind == "current")
    if kind in ("offset", "shift"):
        number = ask.fields.integer("value")
        return Target(offset=number) if kind == "offset" else Target(shift=number)
    try:
        if kind == "datetime":
            return Target(moment_ms=group_resets.parse_datetime(value))
        return Target(duration_ms=group_resets.parse_duration(value))
    except CannotReset as error:
        raise BadInput(str(error)) from None


def _reset_command(ask: Ask, name: str) -> str:
    kind, value = ask.fields.get("to"), ask.fields.get("value").strip()
    option = {"shift": "--shift-by", "duration": "--by-duration"}.get(kind, f"--to-{kind}")
    topic = ask.fields.get("topic").strip()
    numbers = ask.fields.get("partitions").replace(" ", "")
    scope = ["--topic", f"{topic}:{numbers}" if numbers else topic] if topic else ["--all-topics"]
    takes_value = kind in ("offset", "shift", "datetime", "duration")
    words = ["--reset-offsets", "--group", name, *scope, option, *([value] if takes_value else []), "--execute"]
    return command(ask, "kafka-consumer-groups", *words)
