"""`ottla backup restore`: topics, settings and groups' offsets back into a cluster."""

import argparse
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ottla.cli.common.options import BOOTSTRAP_VARIABLE, DEFAULT_BOOTSTRAP, ToolParser, parse_pairs
from ottla.cli.common.output import CommandError, complain, note, print_columns, print_json
from ottla.cli.pipeline.backup_options import (
    Progress,
    Where,
    add_brokers,
    add_master,
    add_place,
    client_of,
    opener,
    parse_moment,
    readable_bytes,
    readable_time,
    where_of,
)
from ottla.cli.pipeline.options import add_json

if TYPE_CHECKING:
    from ottla.model.names import TopicPartition
    from ottla.pipelines.backup.manifest import Manifest
    from ottla.pipelines.backup.restore_plan import RestorePlan
    from ottla.pipelines.backup.restoring import RestoreOptions

EXAMPLES = """
  %(prog)s ./backups --dry-run                             what would be done
  %(prog)s ./backups --topics orders --rename orders=orders-old
  %(prog)s ./backups --prefix restored. --until 2026-11-17T10:30:00Z
  %(prog)s ./backups --at 2026-11-16T00:00:00Z             the newest backup that was taken by then
  %(prog)s ./backups --until-offset orders-0=120000
"""
_SAME, _NEW = "with the offsets that they had", "with new offsets, groups translated"
NOTES = """
Everything is read and compared with its checksums before anything is made, and a topic that has records is never
written to. Raw batches come back byte for byte where the target is an Ottla cluster that grants ClusterAction.
Retention and compaction are held back until all records are in, then the settings of the backup are set. Groups come
last, each to exactly the first record that it had not read. A restore that was killed goes on when the same command
is run again.
"""


def main(argv: Sequence[str] | None = None, prog: str = "ottla backup restore") -> int:
    parser = ToolParser(prog, "Bring topics, their settings and groups' offsets back.", EXAMPLES, notes=NOTES)
    add_place(parser)
    parser.add_argument("--backup", metavar="BACKUP", help="which one (default: the newest)")
    parser.add_argument("--at", metavar="TIME", help="the newest backup that was taken by this time")
    parser.add_argument("--topics", default=".*", metavar="RE", help="topics whose whole name matches (default: all)")
    parser.add_argument(
        "--rename", action="append", default=[], metavar="A=B", help="topic A becomes B; may be repeated"
    )
    parser.add_argument("--prefix", default="", help="before the names of all topics that --rename does not name")
    parser.add_argument("--until", metavar="TIME", help="each partition up to its first record that is later")
    parser.add_argument(
        "--until-offset", action="append", default=[], metavar="TOPIC-PARTITION=OFFSET",
        help="a partition up to this offset, without it; may be repeated",
    )  # fmt: skip
    parser.add_argument("--groups", default=".*", metavar="RE", help="groups whose offsets are restored (default: all)")
    parser.add_argument("--no-groups", action="store_true", help="no group's offsets")
    parser.add_argument("--acls", action="store_true", help="ACLs, too; rules about a renamed topic follow it")
    parser.add_argument("--quotas", action="store_true", help="quotas, too")
    parser.add_argument("--replication-factor", type=int, metavar="N", help="of the topics (default: as they had)")
    parser.add_argument("--hold-retention", action="store_true", help="leave retention and compaction off afterwards")
    parser.add_argument(
        "--compression", default="lz4", choices=("none", "gzip", "snappy", "lz4", "zstd"),
        help="of records from Parquet; raw batches keep their own (default: lz4)",
    )  # fmt: skip
    parser.add_argument(
        "--unchecked", action="store_true",
        help="do not read everything once before anything is made: quicker, after `ottla backup verify` for instance",
    )  # fmt: skip
    parser.add_argument("--dry-run", action="store_true", help="only show the plan")
    add_brokers(parser, f"the target (default: the file's, ${BOOTSTRAP_VARIABLE}, or else {DEFAULT_BOOTSTRAP})")
    add_master(parser)
    add_json(parser)
    args = parser.parse(argv)
    from ottla.pipelines.backup.catalogue import choose, read_catalogue
    from ottla.pipelines.backup.restoring import plan_restore, run_restore

    where = where_of(args)
    at_ms = None if args.at is None else parse_moment(args.at, "--at")
    manifest = choose(read_catalogue(where.place), where.place, args.backup, at_ms)
    options = _options(args, where)
    plan = plan_restore(options, manifest)
    if args.dry_run:
        _show_plan(plan, manifest, json=args.json)
        return 0
    started = time.monotonic()
    with Progress(json=args.json) as progress:
        for text in plan.notes:
            progress.say(text)
        done = run_restore(options, plan, opener(args, "restore"), progress)
    problems = [*done.problems, *_restore_rights(args, options, manifest, plan)]
    _show_done(plan, manifest, done.records, time.monotonic() - started, problems, json=args.json)
    return 1 if problems else 0


def _options(args: argparse.Namespace, where: Where) -> "RestoreOptions":
    from ottla.pipelines.backup.restore_plan import RestoreRequest
    from ottla.pipelines.backup.restoring import RestoreOptions

    request = RestoreRequest(
        topics=args.topics, rename=parse_pairs(args.rename, "--rename"), prefix=args.prefix,
        groups="" if args.no_groups else args.groups, replication_factor=args.replication_factor,
        hold_retention=args.hold_retention,
    )  # fmt: skip
    return RestoreOptions(
        place=where.place, client=client_of(args, where.file), request=request,
        until_ms=None if args.until is None else parse_moment(args.until, "--until"),
        until_offsets=_parse_offsets(args.until_offset), compression=args.compression,
        unchecked=args.unchecked,
    )  # fmt: skip


def _parse_offsets(given: Sequence[str]) -> "dict[TopicPartition, int]":
    from ottla.model.names import TopicPartition

    found = {}
    for name, offset in parse_pairs(given, "--until-offset").items():
        topic, dash, partition = name.rpartition("-")
        if not dash or not partition.isdigit() or not offset.isdigit():
            raise CommandError(f"--until-offset wants topic-partition=offset, not `{name}={offset}`")
        found[TopicPartition(topic, int(partition))] = int(offset)
    return found


def _restore_rights(
    args: argparse.Namespace, options: "RestoreOptions", manifest: "Manifest", plan: "RestorePlan"
) -> list[str]:
    from ottla.client.settings import client_settings
    from ottla.pipelines.backup.restore_plan import renamed_acls
    from ottla.pipelines.backup.translating import restore_acls, restore_quotas
    from ottla.spark import loop
    from ottla.spark.connections import shared_cluster

    cluster = shared_cluster(client_settings(options.client))
    problems = []
    if args.acls and manifest.acls is None:
        problems.append("the backup has no ACLs: its cluster did not tell them")
    elif args.acls and manifest.acls:
        acls = renamed_acls(manifest.acls, options.request, [topic.source for topic in plan.topics])
        loop.run(restore_acls(cluster, acls))
    if args.quotas and manifest.quotas is None:
        problems.append("the backup has no quotas: its cluster did not tell them")
    elif args.quotas and manifest.quotas:
        loop.run(restore_quotas(cluster, manifest.quotas))
    return problems


def _told(topic: Any) -> dict[str, Any]:
    return {
        "topic": topic.source, "target": topic.target, "partitions": len(topic.partitions),
        "records": sum(each.records for each in topic.partitions),
        "bytes": sum(each.bytes for each in topic.partitions),
        "offsets": "same" if topic.same else "translated", "exact": topic.exact,
        "state": "goes on" if any(each.begun for each in topic.partitions) else "empty" if topic.exists else "new",
    }  # fmt: skip


def _show_plan(plan: "RestorePlan", manifest: "Manifest", *, json: bool) -> None:
    topics = [_told(topic) for topic in plan.topics]
    if json:
        groups = [group.group for group in plan.groups]
        settings = {topic.target: topic.finally_ for topic in plan.topics}
        told = {"backup": plan.backup, "topics": topics, "groups": groups, "settings": settings, "notes": plan.notes}
        print_json(told)
        return
    print(f"backup {plan.backup}, taken {readable_time(manifest.taken_ms)} UTC. This would be done:")
    head = ("TOPIC", "BECOMES", "PARTITIONS", "RECORDS", "BYTES", "OFFSETS", "BATCHES", "TARGET")
    rows = [
        (
            each["topic"], each["target"], each["partitions"], f"{each['records']:,}", readable_bytes(each["bytes"]),
            each["offsets"], "as they were" if each["exact"] else "anew", each["state"],
        )
        for each in topics
    ]  # fmt: skip
    print_columns([head, *rows], gap=2)
    for topic in plan.topics:
        if topic.finally_:
            print(f"settings of {topic.target}: {', '.join(f'{k}={v}' for k, v in sorted(topic.finally_.items()))}")
    print(f"groups: {', '.join(group.group for group in plan.groups) or 'none'}")
    if manifest.scram_users:
        note(f"SCRAM users need new passwords: {', '.join(user.user for user in manifest.scram_users)}")
    for text in plan.notes:
        note(text)


def _show_done(
    plan: "RestorePlan", manifest: "Manifest", records: int, seconds: float, problems: Sequence[str], *, json: bool
) -> None:
    topics = [_told(topic) for topic in plan.topics]
    if json:
        told = {"event": "done", "backup": plan.backup, "topics": topics, "records": records, "problems": problems}
        print_json({**told, "groups": [group.group for group in plan.groups], "seconds": round(seconds, 3)})
        return
    for each in topics:
        how = "byte for byte" if each["exact"] else _SAME if each["offsets"] == "same" else _NEW
        print(f"{each['topic']} -> {each['target']}: {each['partitions']} partitions, {how}")
    size = sum(each["bytes"] for each in topics)
    moved = f"{records:,} records ({readable_bytes(size)} in objects)"
    print(f"{moved} restored in {seconds:.1f} s; {len(plan.groups)} groups")
    if manifest.scram_users:
        note(f"SCRAM users need new passwords: {', '.join(user.user for user in manifest.scram_users)}")
    for text in problems:
        complain(text)
