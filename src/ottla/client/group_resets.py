"""Where a group's offsets shall stand: the rules of resetting them, for the tool and for the console.

What is odd and can be done all the same is told by `Notes`; what cannot be done raises CannotReset.
"""

import re
import time
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import NamedTuple

from ottla.client import groups, offsets
from ottla.client.cluster import Cluster
from ottla.client.errors import ClientError
from ottla.client.offsets import FoundOffset
from ottla.model.error_words import in_words
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.names import TopicPartition

Plan = dict[TopicPartition, int]
Notes = list[str]
INACTIVE = ("Empty", "Dead")


class CannotReset(ClientError):
    """The message says why, and what to do."""


class Target(NamedTuple):
    """Where to; exactly one of them is said."""

    earliest: bool = False
    latest: bool = False
    current: bool = False
    offset: int | None = None
    shift: int | None = None
    moment_ms: int | None = None
    duration_ms: int | None = None


async def check_inactive(cluster: Cluster, group_id: str) -> None:
    try:
        group = await groups.describe_group(cluster, group_id)
    except ApiError as error:
        if error.code == ErrorCode.GROUP_ID_NOT_FOUND:
            return  # offsets can be set for a group that has yet to begin
        raise
    if group.state not in INACTIVE:
        raise CannotReset(
            f"Assignments can only be reset if the group '{group_id}' is inactive, "
            f"but the current state is {group.state}."
        )


async def plan(
    cluster: Cluster,
    committed: Mapping[TopicPartition, int],
    partitions: list[TopicPartition],
    target: Target,
    notes: Notes,
) -> Plan:
    """The new offset of each of these partitions."""
    if target.offset is not None:
        return await within_log(cluster, dict.fromkeys(partitions, target.offset), notes)
    if target.shift is not None:
        return await within_log(cluster, shifted(partitions, committed, target.shift), notes)
    if target.earliest:
        return await _ask(cluster, partitions, offsets.EARLIEST)
    if target.latest:
        return await _ask(cluster, partitions, offsets.LATEST)
    if target.moment_ms is not None:
        return await _at_time(cluster, partitions, target.moment_ms, notes)
    if target.duration_ms is not None:
        return await _at_time(cluster, partitions, int(time.time() * 1000) - target.duration_ms, notes)
    rest = await _ask(cluster, [tp for tp in partitions if tp not in committed], offsets.LATEST)
    return {tp: committed[tp] if tp in committed else rest[tp] for tp in partitions}


async def _ask(cluster: Cluster, partitions: Iterable[TopicPartition], timestamp: int) -> Plan:
    """Offsets that every partition must have."""
    found = await offsets.list_offsets(cluster, dict.fromkeys(partitions, timestamp)) if partitions else {}
    plan: Plan = {}
    for partition, result in sorted(found.items()):
        if not isinstance(result, FoundOffset) or result.offset is None:
            reason = in_words(result) if isinstance(result, ErrorCode) else "it has no such offset"
            raise CannotReset(f"{partition}: {reason}")
        plan[partition] = result.offset
    return plan


async def _at_time(cluster: Cluster, partitions: list[TopicPartition], timestamp: int, notes: Notes) -> Plan:
    """The first record at or after a time; where there is none, the end."""
    # Below zero lie the protocol's special times; nothing is older than zero.
    found = await offsets.list_offsets(cluster, dict.fromkeys(partitions, max(timestamp, 0)))
    without = [tp for tp, result in found.items() if isinstance(result, FoundOffset) and result.offset is None]
    for partition in sorted(without):
        notes.append(f"{partition} has no record that late: taking its end")
    ends = await _ask(cluster, without, offsets.LATEST)
    plan: Plan = {}
    for partition in partitions:
        result = found[partition]
        if isinstance(result, ErrorCode):
            raise CannotReset(f"{partition}: {in_words(result)}")
        plan[partition] = ends[partition] if result.offset is None else result.offset
    return plan


async def within_log(cluster: Cluster, wanted: Plan, notes: Notes) -> Plan:
    """Offsets that lie outside the log move to its nearer end."""
    starts = await _ask(cluster, wanted, offsets.EARLIEST)
    ends = await _ask(cluster, wanted, offsets.LATEST)
    plan: Plan = {}
    for partition, offset in sorted(wanted.items()):
        plan[partition] = min(max(offset, starts[partition]), ends[partition])
        if plan[partition] != offset:
            side = "lower than the first" if offset < plan[partition] else "higher than the last"
            notes.append(f"{partition}: offset {offset} is {side} one, taking {plan[partition]}")
    return plan


def shifted(partitions: Iterable[TopicPartition], committed: Mapping[TopicPartition, int], by: int) -> Plan:
    plan: Plan = {}
    for partition in partitions:
        if partition not in committed:
            raise CannotReset(f"{partition}: the group has no offset there to shift from")
        plan[partition] = committed[partition] + by
    return plan


def parse_datetime(text: str) -> int:
    """Milliseconds since 1970 for `2026-01-31T12:00:00.000`, which is UTC unless it ends in Z or an offset."""
    try:
        if "T" not in text:
            raise ValueError
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise CannotReset(
            f"--to-datetime wants YYYY-MM-DDTHH:mm:SS.sss, with Z or +01:00 if you like, not `{text}`"
        ) from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return round(moment.timestamp() * 1000)


_SIGNED = r"([-+]?\d+)"
_DURATION = re.compile(
    rf"([-+]?)P(?:{_SIGNED}D)?(?:T(?=[-+\d])(?:{_SIGNED}H)?(?:{_SIGNED}M)?(?:([-+]?\d+(?:[.,]\d{{0,9}})?)S)?)?",
    re.IGNORECASE,
)


def parse_duration(text: str) -> int:
    """Milliseconds of an ISO 8601 duration in days, hours, minutes and seconds."""
    match = _DURATION.fullmatch(text.strip())
    if match is None or not any(match.groups()[1:]):
        raise CannotReset(f"--by-duration wants PnDTnHnMnS, such as P1D or PT1H30M, not `{text}`")
    sign, days, hours, minutes, seconds = match.groups()
    total = int(days or 0) * 86_400 + int(hours or 0) * 3_600 + int(minutes or 0) * 60
    total_ms = total * 1000 + round(float((seconds or "0").replace(",", ".")) * 1000)
    return -total_ms if sign == "-" else total_ms
