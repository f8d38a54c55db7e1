"""What `kafka-consumer-groups --describe` shows: offsets with lag, members, or state, in Kafka's columns or as JSON."""

import argparse
import sys
from typing import NamedTuple

from ottla.cli.admin.consumer_group_scope import group_ids
from ottla.cli.common.output import complain, print_columns, print_json
from ottla.client import groups, offsets
from ottla.client.cluster import Cluster
from ottla.client.groups import CommittedOffset, GroupDescription, MemberDescription
from ottla.client.offsets import FoundOffset
from ottla.model.error_words import in_words
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.names import TopicPartition

MISSING = "-"
REBALANCING = ("PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling")


class OffsetRow(NamedTuple):
    """One partition of a group: how far it has come, how far the log goes, and who reads it."""

    group: str
    topic: str
    partition: int
    leader_epoch: int | None
    current_offset: int | None
    log_end_offset: int | None
    lag: int | None
    consumer_id: str | None
    host: str | None
    client_id: str | None


async def describe(cluster: Cluster, args: argparse.Namespace) -> int:
    """Show each group; the exit code tells whether all of them exist."""
    documents: list[dict[str, object]] = []
    failed = False
    for group_id in sorted(await group_ids(cluster, args)):
        try:
            group = await groups.describe_group(cluster, group_id)
        except ApiError as error:
            group = None
            reason = "does not exist" if error.code == ErrorCode.GROUP_ID_NOT_FOUND else in_words(error)
        if group is None or group.state == "Dead":
            complain(f"Consumer group '{group_id}' {reason if group is None else 'does not exist'}.")
            failed = True
            continue
        rows = [] if args.members or args.state is not None else await offset_rows(cluster, group)
        if args.json:
            documents.append(_as_json(group, rows, args))
            continue
        _tell_state(group)
        if args.members:
            _print_members(group, verbose=args.verbose)
        elif args.state is not None:
            _print_state(group, verbose=args.verbose)
        elif rows:
            _print_offsets(rows, verbose=args.verbose)
    if args.json:
        print_json(documents)
    return 1 if failed else 0


async def offset_rows(cluster: Cluster, group: GroupDescription) -> list[OffsetRow]:
    """What members have been given, busiest member first, then what nobody reads but the group has offsets for."""
    committed = await groups.group_offsets(cluster, group.group_id)
    busiest_first = sorted(group.members, key=lambda member: -len(member.assignment))
    readers: dict[TopicPartition, MemberDescription | None] = {
        partition: member for member in busiest_first for partition in sorted(member.assignment)
    }
    readers.update({partition: None for partition in committed if partition not in readers})
    ends = await offsets.list_offsets(cluster, dict.fromkeys(readers, offsets.LATEST))
    return [
        _offset_row(group.group_id, partition, committed.get(partition), ends.get(partition), member)
        for partition, member in readers.items()
    ]


def _offset_row(
    group_id: str,
    partition: TopicPartition,
    committed: CommittedOffset | None,
    end: FoundOffset | ErrorCode | None,
    member: MemberDescription | None,
) -> OffsetRow:
    current = committed.offset if committed else None
    log_end = end.offset if isinstance(end, FoundOffset) else None
    return OffsetRow(
        group_id,
        partition.topic,
        partition.partition,
        committed.leader_epoch if committed and committed.leader_epoch >= 0 else None,
        current,
        log_end,
        log_end - current if log_end is not None and current is not None else None,
        member.member_id if member else None,
        member.host if member else None,
        member.client_id if member else None,
    )


def _tell_state(group: GroupDescription) -> None:
    if group.state == "Empty":
        print(f"\nConsumer group '{group.group_id}' has no active members.", file=sys.stderr)
    elif group.state in REBALANCING:
        print(f"\nWarning: Consumer group '{group.group_id}' is rebalancing.", file=sys.stderr)


def _print_offsets(rows: list[OffsetRow], *, verbose: bool) -> None:
    epoch = ["LEADER-EPOCH"] if verbose else []
    titles = ["GROUP", "TOPIC", "PARTITION", *epoch, "CURRENT-OFFSET", "LOG-END-OFFSET", "LAG"]
    titles += ["CONSUMER-ID", "HOST", "CLIENT-ID"]
    table = [
        [
            MISSING if cell is None else cell
            for name, cell in zip(OffsetRow._fields, row, strict=True)
            if verbose or name != "leader_epoch"
        ]
        for row in rows
    ]
    print()
    print_columns([titles, *table], minimum=[15, 15, 10, *([15] if verbose else []), 15, 15, 15, 15, 15, 0])


def _print_members(group: GroupDescription, *, verbose: bool) -> None:
    static = any(member.instance_id for member in group.members)
    titles = ["GROUP", "CONSUMER-ID", *(["GROUP-INSTANCE-ID"] if static else []), "HOST", "CLIENT-ID", "#PARTITIONS"]
    minimum = [15, 15, *([17] if static else []), 15, 15, 15]
    if verbose:
        titles += ["CURRENT-EPOCH", "CURRENT-ASSIGNMENT", "TARGET-EPOCH", "TARGET-ASSIGNMENT"]
        minimum += [15, 20, 15, 20]
    table: list[list[object]] = []
    for member in group.members:
        row: list[object] = [group.group_id, member.member_id, *([member.instance_id or ""] if static else [])]
        row += [member.host, member.client_id, len(member.assignment)]
        if verbose:
            row += [_or_missing(member.epoch), _assignment(member.assignment)]
            row += [_or_missing(group.target_epoch), _assignment(member.target or [])]
        table.append(row)
    print()
    print_columns([titles, *table], minimum=minimum)


def _assignment(partitions: list[TopicPartition]) -> str:
    topics: dict[str, list[str]] = {}
    for topic, number in sorted(partitions):
        topics.setdefault(topic, []).append(str(number))
    return ";".join(f"{topic}:{','.join(numbers)}" for topic, numbers in topics.items()) or MISSING


def _or_missing(value: int | str | None) -> int | str:
    return MISSING if value is None or value == "" else value


def _print_state(group: GroupDescription, *, verbose: bool) -> None:
    titles = ["GROUP", "COORDINATOR (ID)", "ASSIGNMENT-STRATEGY", "STATE"]
    coordinator = f"{group.coordinator.address}  ({group.coordinator.node_id})"
    row: list[object] = [group.group_id, coordinator, _or_missing(group.assignor), group.state]
    minimum = [15, 25, 20, 20]
    if verbose:
        titles += ["GROUP-EPOCH", "TARGET-ASSIGNMENT-EPOCH"]
        row += [_or_missing(group.epoch), _or_missing(group.target_epoch)]
        minimum += [15, 25]
    print()
    print_columns([[*titles, "#MEMBERS"], [*row, len(group.members)]], minimum=[*minimum, 0])


def _as_json(group: GroupDescription, rows: list[OffsetRow], args: argparse.Namespace) -> dict[str, object]:
    document: dict[str, object] = {
        "group": group.group_id,
        "type": group.type,
        "state": group.state,
        "assignor": group.assignor or None,
        "coordinator": {"id": group.coordinator.node_id, "address": str(group.coordinator.address)},
        "member_count": len(group.members),
    }
    if args.members:
        document["members"] = [
            {
                "consumer_id": member.member_id,
                "instance_id": member.instance_id,
                "client_id": member.client_id,
                "host": member.host,
                "assignment": [partition._asdict() for partition in member.assignment],
            }
            for member in group.members
        ]
    elif args.state is None:
        document["offsets"] = [{k: v for k, v in row._asdict().items() if k != "group"} for row in rows]
    return document
