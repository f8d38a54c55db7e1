"""`kafka-consumer-groups --reset-offsets`: where a group's offsets shall stand, and putting them there."""

import argparse
import csv
import io
import re
import time
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime

from ottla.cli.admin.consumer_group_scope import group_ids, partitions_of
from ottla.cli.common.error_words import in_words
from ottla.cli.common.options import ToolParser, read_text
from ottla.cli.common.output import CommandError, complain, print_columns, print_json, warn
from ottla.client import groups, offsets
from ottla.client.cluster import Cluster
from ottla.client.offsets import FoundOffset
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.names import TopicPartition

Plan = dict[TopicPartition, int]

FORMS = (
    "to_earliest", "to_latest", "to_current", "to_offset", "to_datetime", "by_duration", "shift_by", "from_file",
)  # fmt: skip
INACTIVE = ("Empty", "Dead")


def add_options(parser: ToolParser) -> None:
    form = parser.add_argument_group("with --reset-offsets: where to (exactly one)")
    form.add_argument("--to-earliest", action="store_true", help="to the first record there is")
    form.add_argument("--to-latest", action="store_true", help="to the end")
    form.add_argument("--to-current", action="store_true", help="where it stands now (the end where it stands nowhere)")
    form.add_argument("--to-offset", type=int, metavar="N", help="to this offset")
    form.add_argument("--shift-by", type=int, metavar="N", help="N records on, or back if negative")
    form.add_argument(
        "--to-datetime", metavar="TIME", help="to the first record at or after YYYY-MM-DDTHH:mm:SS.sss (UTC)"
    )
    form.add_argument("--by-duration", metavar="PnDTnHnMnS", help="to what was current this long ago, such as PT1H30M")
    form.add_argument("--from-file", metavar="FILE", help="to the offsets in a CSV file, as --export prints it")
    way = parser.add_argument_group("with --reset-offsets: how")
    way.add_argument("--dry-run", action="store_true", help="only show the new offsets (the default)")
    way.add_argument("--execute", action="store_true", help="do it")
    way.add_argument("--export", action="store_true", help="print topic,partition,offset lines for --from-file")


def check_options(parser: ToolParser, args: argparse.Namespace) -> None:
    given = [form for form in FORMS if getattr(args, form) not in (None, False)]
    if not args.reset_offsets:
        extra = [*given, *(way for way in ("dry_run", "execute", "export", "all_topics") if getattr(args, way))]
        if extra:
            parser.error(f"--{extra[0].replace('_', '-')} goes with --reset-offsets")
        return
    if len(given) != 1:
        forms = ", ".join(f"--{form.replace('_', '-')}" for form in FORMS)
        parser.error(f"--reset-offsets needs exactly one of {forms}")
    if args.dry_run and args.execute:
        parser.error("give --dry-run or --execute, not both")
    if args.topic and args.all_topics:
        parser.error("give --topic or --all-topics, not both")
    if not (args.topic or args.all_topics or args.from_file):
        parser.error("say which topics: --topic TOPIC, --topic TOPIC:0,1 or --all-topics")


async def reset(cluster: Cluster, args: argparse.Namespace) -> int:
    if not args.execute and not args.dry_run and not args.json:
        warn("nothing is changed without --execute; add --dry-run to say that this is what you want")
    from_file = parse_plans(read_text(args.from_file), args.group or []) if args.from_file else None
    plans: dict[str, Plan] = {}
    failed = False
    for group_id in await group_ids(cluster, args):
        try:
            await _check_inactive(cluster, group_id)
            plan = await _plan(cluster, group_id, args, from_file)
            refused = await groups.commit_offsets(cluster, group_id, plan) if args.execute and plan else {}
        except ApiError as error:
            raise CommandError(f"group `{group_id}`: {in_words(error)}") from error
        except CommandError as error:
            complain(str(error))
            failed = True
            continue
        for partition, code in refused.items():
            complain(f"group `{group_id}`, {partition}: {in_words(code)}")
        failed = failed or bool(refused)
        plans[group_id] = {partition: offset for partition, offset in plan.items() if partition not in refused}
    _show(plans, args)
    return 1 if failed else 0


async def _check_inactive(cluster: Cluster, group_id: str) -> None:
    try:
        group = await groups.describe_group(cluster, group_id)
    except ApiError as error:
        if error.code == ErrorCode.GROUP_ID_NOT_FOUND:
            return  # offsets can be set for a group that has yet to begin
        raise
    if group.state not in INACTIVE:
        raise CommandError(
            f"Assignments can only be reset if the group '{group_id}' is inactive, "
            f"but the current state is {group.state}."
        )


async def _plan(
    cluster: Cluster, group_id: str, args: argparse.Namespace, from_file: Mapping[str, Plan] | None
) -> Plan:
    """The new offset of each partition in scope."""
    if from_file is not None:
        if group_id not in from_file:
            raise CommandError(f"{args.from_file} has no offsets for group `{group_id}`")
        return await _within_log(cluster, from_file[group_id])
    committed = {tp: found.offset for tp, found in (await groups.group_offsets(cluster, group_id)).items()}
    partitions = await _scope(cluster, args, committed)
    if args.to_offset is not None:
        return await _within_log(cluster, dict.fromkeys(partitions, args.to_offset))
    if args.shift_by is not None:
        return await _within_log(cluster, shifted(partitions, committed, args.shift_by))
    if args.to_earliest:
        return await _ask(cluster, partitions, offsets.EARLIEST)
    if args.to_latest:
        return await _ask(cluster, partitions, offsets.LATEST)
    if args.to_current:
        rest = await _ask(cluster, [tp for tp in partitions if tp not in committed], offsets.LATEST)
        return {tp: committed[tp] if tp in committed else rest[tp] for tp in partitions}
    if args.to_datetime is not None:
        return await _at_time(cluster, partitions, parse_datetime(args.to_datetime))
    return await _at_time(cluster, partitions, int(time.time() * 1000) - parse_duration(args.by_duration))


async def _scope(
    cluster: Cluster, args: argparse.Namespace, committed: Mapping[TopicPartition, int]
) -> list[TopicPartition]:
    if args.all_topics:
        return sorted(committed)
    partitions, unknown = await partitions_of(cluster, args.topic)
    if unknown:
        raise CommandError(f"there is no topic {', '.join(f'`{topic}`' for topic in unknown)}")
    return partitions


async def _ask(cluster: Cluster, partitions: Iterable[TopicPartition], timestamp: int) -> Plan:
    """Offsets that every partition must have."""
    found = await offsets.list_offsets(cluster, dict.fromkeys(partitions, timestamp)) if partitions else {}
    plan: Plan = {}
    for partition, result in sorted(found.items()):
        if not isinstance(result, FoundOffset) or result.offset is None:
            reason = in_words(result) if isinstance(result, ErrorCode) else "it has no such offset"
            raise CommandError(f"{partition}: {reason}")
        plan[partition] = result.offset
    return plan


async def _at_time(cluster: Cluster, partitions: list[TopicPartition], timestamp: int) -> Plan:
    """The first record at or after a time; where there is none, the end."""
    # Below zero lie the protocol's special times; nothing is older than zero.
    found = await offsets.list_offsets(cluster, dict.fromkeys(partitions, max(timestamp, 0)))
    without = [tp for tp, result in found.items() if isinstance(result, FoundOffset) and result.offset is None]
    for partition in sorted(without):
        warn(f"{partition} has no record that late: taking its end")
    ends = await _ask(cluster, without, offsets.LATEST)
    plan: Plan = {}
    for partition in partitions:
        result = found[partition]
        if isinstance(result, ErrorCode):
            raise CommandError(f"{partition}: {in_words(result)}")
        plan[partition] = ends[partition] if result.offset is None else result.offset
    return plan


async def _within_log(cluster: Cluster, wanted: Plan) -> Plan:
    """Offsets that lie outside the log move to its nearer end."""
    starts = await _ask(cluster, wanted, offsets.EARLIEST)
    ends = await _ask(cluster, wanted, offsets.LATEST)
    plan: Plan = {}
    for partition, offset in sorted(wanted.items()):
        plan[partition] = min(max(offset, starts[partition]), ends[partition])
        if plan[partition] != offset:
            side = "lower than the first" if offset < plan[partition] else "higher than the last"
            warn(f"{partition}: offset {offset} is {side} one, taking {plan[partition]}")
    return plan


def shifted(partitions: Iterable[TopicPartition], committed: Mapping[TopicPartition, int], by: int) -> Plan:
    plan: Plan = {}
    for partition in partitions:
        if partition not in committed:
            raise CommandError(f"{partition}: the group has no offset there to shift from")
        plan[partition] = committed[partition] + by
    return plan


def parse_datetime(text: str) -> int:
    """Milliseconds since 1970 for `2026-01-31T12:00:00.000`, which is UTC unless it ends in Z or an offset."""
    try:
        if "T" not in text:
            raise ValueError
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise CommandError(
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
        raise CommandError(f"--by-duration wants PnDTnHnMnS, such as P1D or PT1H30M, not `{text}`")
    sign, days, hours, minutes, seconds = match.groups()
    total = int(days or 0) * 86_400 + int(hours or 0) * 3_600 + int(minutes or 0) * 60
    total_ms = total * 1000 + round(float((seconds or "0").replace(",", ".")) * 1000)
    return -total_ms if sign == "-" else total_ms


def parse_plans(text: str, group_ids: list[str]) -> dict[str, Plan]:
    """CSV lines `topic,partition,offset` for the one group named, or `group,topic,partition,offset`."""
    plans: dict[str, Plan] = {}
    for number, row in enumerate(csv.reader(io.StringIO(text)), start=1):
        if not row:
            continue
        if len(row) == 3 and len(group_ids) == 1:
            row = [group_ids[0], *row]  # noqa: PLW2901
        try:
            group, topic, partition, offset = (cell.strip() for cell in row)
            plans.setdefault(group, {})[TopicPartition(topic, int(partition))] = int(offset)
        except ValueError:
            wanted = "topic,partition,offset" if len(group_ids) == 1 else "group,topic,partition,offset"
            raise CommandError(f"--from-file: line {number} does not read {wanted}: {','.join(row)}") from None
    return plans


def _show(plans: Mapping[str, Plan], args: argparse.Namespace) -> None:
    rows = [(group, tp.topic, tp.partition, offset) for group, plan in plans.items() for tp, offset in plan.items()]
    if args.json:
        names = ("group", "topic", "partition", "new_offset")
        executed = bool(args.execute)
        print_json([{**dict(zip(names, row, strict=True)), "executed": executed} for row in rows])
    elif args.export:
        alone = len(args.group or []) == 1
        lines = io.StringIO()
        csv.writer(lines, lineterminator="\n").writerows(row[1:] if alone else row for row in rows)
        print(lines.getvalue())
    elif plans:
        print()
        print_columns([("GROUP", "TOPIC", "PARTITION", "NEW-OFFSET"), *rows], minimum=(15, 15, 10, 0))
