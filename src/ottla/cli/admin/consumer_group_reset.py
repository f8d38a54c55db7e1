"""`kafka-consumer-groups --reset-offsets`: where a group's offsets shall stand, and putting them there."""

import argparse
import csv
import io
from collections.abc import Mapping

from ottla.cli.admin.consumer_group_scope import group_ids, partitions_of
from ottla.cli.common.options import ToolParser, read_text
from ottla.cli.common.output import CommandError, complain, print_columns, print_json, warn
from ottla.client import groups
from ottla.client.cluster import Cluster
from ottla.client.group_resets import (
    CannotReset,
    Plan,
    Target,
    check_inactive,
    parse_datetime,
    parse_duration,
    plan,
    within_log,
)
from ottla.model.error_words import in_words
from ottla.model.errors import ApiError
from ottla.model.names import TopicPartition

FORMS = (
    "to_earliest", "to_latest", "to_current", "to_offset", "to_datetime", "by_duration", "shift_by", "from_file",
)  # fmt: skip


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
            await check_inactive(cluster, group_id)
            wanted = await _plan(cluster, group_id, args, from_file)
            refused = await groups.commit_offsets(cluster, group_id, wanted) if args.execute and wanted else {}
        except ApiError as error:
            raise CommandError(f"group `{group_id}`: {in_words(error)}") from error
        except (CannotReset, CommandError) as error:
            complain(str(error))
            failed = True
            continue
        for partition, code in refused.items():
            complain(f"group `{group_id}`, {partition}: {in_words(code)}")
        failed = failed or bool(refused)
        plans[group_id] = {partition: offset for partition, offset in wanted.items() if partition not in refused}
    _show(plans, args)
    return 1 if failed else 0


async def _plan(
    cluster: Cluster, group_id: str, args: argparse.Namespace, from_file: Mapping[str, Plan] | None
) -> Plan:
    """The new offset of each partition in scope."""
    notes: list[str] = []
    try:
        if from_file is not None:
            if group_id not in from_file:
                raise CommandError(f"{args.from_file} has no offsets for group `{group_id}`")
            return await within_log(cluster, from_file[group_id], notes)
        committed = {tp: found.offset for tp, found in (await groups.group_offsets(cluster, group_id)).items()}
        return await plan(cluster, committed, await _scope(cluster, args, committed), _target(args), notes)
    finally:
        for note in notes:
            warn(note)


def _target(args: argparse.Namespace) -> Target:
    return Target(
        earliest=args.to_earliest,
        latest=args.to_latest,
        current=args.to_current,
        offset=args.to_offset,
        shift=args.shift_by,
        moment_ms=None if args.to_datetime is None else parse_datetime(args.to_datetime),
        duration_ms=None if args.by_duration is None else parse_duration(args.by_duration),
    )


async def _scope(
    cluster: Cluster, args: argparse.Namespace, committed: Mapping[TopicPartition, int]
) -> list[TopicPartition]:
    if args.all_topics:
        return sorted(committed)
    partitions, unknown = await partitions_of(cluster, args.topic)
    if unknown:
        raise CommandError(f"there is no topic {', '.join(f'`{topic}`' for topic in unknown)}")
    return partitions


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
