"""Moving replicas: a plan with what it costs, then throttled, followed and, if need be, given up."""

import asyncio
import json
from typing import Any

from ottla.client import replicas, replication_throttles
from ottla.client.replicas import ElectionType
from ottla.console import reassigning
from ottla.console.asking import Ask, BadInput, Done, NotThere
from ottla.console.commands import command
from ottla.console.reassigning import GOALS, Move
from ottla.console.snapshot import Snapshot
from ottla.model.error_words import in_words
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.names import TopicPartition

MOVES_SHOWN = 200
MOVES_MAX = 5000
"""In one request; more is done by asking again."""
AT_ONCE = 1000
FILE_MOVES_MAX = 1000
"""A page with more of them in it would be large: it says where to get the file."""


async def show(ask: Ask) -> dict[str, Any]:
    """Moves under way; with a `goal`, a plan and what it would move."""
    found = await ask.snapshot()
    moving = await replicas.list_reassignments(ask.watched.cluster)
    document: dict[str, Any] = {
        "brokers": list(found.brokers),
        "moving": [
            {
                "topic": at.topic,
                "partition": at.partition,
                "adding": each.adding,
                "removing": each.removing,
                "replicas": each.replicas,
                "done_bytes": sum(found.disks.size(at, broker) for broker in each.adding),
                "all_bytes": found.disks.largest(at) * len(each.adding),
            }
            for at, each in sorted(moving.items())
            if at in found.look.places
        ],
        "goal": ask.fields.get("goal"),
        "moves": [],
        "left_out": 0,
        "bytes": 0,
        "not_preferred": sum(
            place.leader is not None and place.leader != place.replicas[0] for place in found.look.places.values()
        ),
        "_goals": GOALS,
        "_fields": _said(ask),
        "_command": command(ask, "kafka-reassign-partitions", "--list"),
        "_cancel": command(ask, "kafka-reassign-partitions", "--reassignment-json-file", "plan.json", "--cancel"),
        "_unthrottle": command(ask, "kafka-reassign-partitions", "--reassignment-json-file", "plan.json", "--verify"),
        "_elect": command(ask, "kafka-leader-election", "--election-type", "preferred", "--all-topic-partitions"),
        "_sizes_known": found.disks.known,
    }
    if ask.fields.get("goal"):
        moves = await asyncio.to_thread(_moves, ask, found)
        document |= {
            "moves": moves[:MOVES_SHOWN],
            "left_out": max(0, len(moves) - MOVES_SHOWN),
            "count": len(moves),
            "bytes": sum(move.bytes_to_move for move in moves),
            "after": _after(found, moves),
            "plan": as_document(moves[:MOVES_MAX]) if len(moves) <= FILE_MOVES_MAX or not ask.for_page else "",
            "_command": command(
                ask, "kafka-reassign-partitions", "--reassignment-json-file", "plan.json", "--throttle",
                ask.fields.get("throttle") or "50000000", "--execute",
            ),
        }  # fmt: skip
    return document


def _said(ask: Ask) -> dict[str, str]:
    return {name: ask.fields.get(name) for name in ("goal", "broker", "factor", "topics", "throttle")}


def _moves(ask: Ask, found: Snapshot) -> list[Move]:
    goal = ask.fields.get("goal")
    racks = {node: broker.rack for node, broker in found.look.brokers.items()}
    current = _current(ask, found)
    plan: reassigning.Replicas
    if goal == "leave":
        plan = reassigning.leave(current, ask.fields.integer("broker", least=0), racks)
    elif goal == "factor":
        plan = reassigning.change_factor(current, ask.fields.integer("factor", least=1), racks)
    elif goal == "spread":
        plan = reassigning.spread(current, racks)
    elif goal == "anew":
        plan = reassigning.anew(current, racks)
    else:
        raise BadInput(f"the goal is one of {', '.join(GOALS)}, not `{goal}`")
    return reassigning.moves_of(plan, current, found.disks.largest)


def _current(ask: Ask, found: Snapshot) -> dict[TopicPartition, tuple[int, ...]]:
    names = [each.strip() for each in ask.fields.get("topics").replace(",", " ").split() if each.strip()]
    unknown = [name for name in names if name not in found.numbers]
    if unknown:
        raise NotThere(f"there is no topic {unknown[0]}")
    return {at: place.replicas for at, place in found.look.places.items() if not names or at.topic in names}


def _after(found: Snapshot, moves: list[Move]) -> list[dict[str, int]]:
    """What each broker holds now, and would hold."""
    change: dict[int, list[int]] = {row.broker: [row.replicas, row.preferred] for row in found.brokers}
    for move in moves:
        for broker in move.old:
            change[broker][0] -= 1
        for broker in move.new:
            change[broker][0] += 1
        change[move.old[0]][1] -= 1
        change[move.new[0]][1] += 1
    return [
        {
            "broker": row.broker,
            "replicas": row.replicas,
            "replicas_then": change[row.broker][0],
            "leads": row.preferred,
            "leads_then": change[row.broker][1],
        }
        for row in found.brokers
    ]


def as_document(moves: list[Move]) -> str:
    """The file of `kafka-reassign-partitions`."""
    partitions = [
        {"topic": move.partition.topic, "partition": move.partition.partition, "replicas": list(move.new)}
        for move in moves
    ]
    return json.dumps({"version": 1, "partitions": partitions})


async def execute(ask: Ask) -> Done:
    found = await ask.snapshot()
    cluster = ask.watched.cluster
    moves = await asyncio.to_thread(_moves, ask, found)
    if not moves:
        raise BadInput("nothing would move")
    if len(moves) > MOVES_MAX:
        raise BadInput(f"the plan moves {len(moves):,} partitions; name topics, so that it is {MOVES_MAX:,} at most")
    new = {move.partition: move.new for move in moves}
    old = {move.partition: move.old for move in moves}
    throttle = ask.fields.get("throttle").strip()
    if throttle:
        rate = ask.fields.integer("throttle", least=1)
        alive = {at: [broker for broker in brokers if broker in found.look.brokers] for at, brokers in old.items()}
        await replication_throttles.throttle_moves(cluster, new, alive, rate)
    refused: dict[TopicPartition, ApiError] = {}
    parts = list(new)
    for start in range(0, len(parts), AT_ONCE):
        refused |= await replicas.alter_reassignments(cluster, {at: new[at] for at in parts[start : start + AT_ONCE]})
    words = f"{len(moves) - len(refused)} partitions are moving"
    if refused:
        at, error = next(iter(refused.items()))
        words += f"; {len(refused)} were refused, such as {at}: {in_words(error)}"
    return Done(words, ask.link("/reassignment"), {"moving": len(moves) - len(refused), "refused": len(refused)})


async def cancel(ask: Ask) -> Done:
    """One move, or all."""
    topic = ask.fields.get("topic")
    moving = await replicas.list_reassignments(ask.watched.cluster)
    one = TopicPartition(topic, ask.fields.integer("partition", least=0)) if topic else None
    wanted = {at: None for at in moving if one in (None, at) and ask.caller.sees(at.topic)}
    if not wanted:
        raise NotThere("nothing is moving" if not topic else f"{topic} is not moving")
    refused = await replicas.alter_reassignments(ask.watched.cluster, wanted)
    words = f"{len(wanted) - len(refused)} moves are given up"
    return Done(words, ask.link("/reassignment"), {"cancelled": len(wanted) - len(refused)}, topic)


async def unthrottle(ask: Ask) -> Done:
    """Takes the throttles of moves away from all brokers, and from topics that have one."""
    found = await ask.snapshot()
    topics = [each for each in ask.fields.get("topics").replace(",", " ").split() if each in found.numbers]
    await replication_throttles.clear(ask.watched.cluster, sorted(found.look.brokers), topics)
    return Done("the throttles are taken away", ask.link("/reassignment"))


async def elect(ask: Ask) -> Done:
    """The first replica of each partition becomes its leader, where it is in sync."""
    told = await replicas.elect_leaders(ask.watched.cluster, ElectionType.PREFERRED, None)
    elected = sum(error is None for error in told.values())
    refused = [e for e in told.values() if e is not None and e.code is not ErrorCode.ELECTION_NOT_NEEDED]
    words = f"{elected} partitions are led by their preferred replicas" + (
        f"; {len(refused)} cannot be: {in_words(refused[0])}" if refused else ""
    )
    return Done(words, ask.link("/reassignment"), {"elected": elected, "refused": len(refused)})
