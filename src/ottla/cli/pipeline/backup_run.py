"""`ottla backup run`: take a backup, once or again and again."""

import argparse
import threading
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ottla.cli.common.options import BOOTSTRAP_VARIABLE, DEFAULT_BOOTSTRAP, ToolParser
from ottla.cli.common.output import print_json, warn
from ottla.cli.pipeline.backup_options import (
    Progress,
    add_brokers,
    add_master,
    add_place,
    client_of,
    opener,
    parse_length,
    readable_bytes,
    where_of,
)
from ottla.cli.pipeline.options import add_json, ending_in_order
from ottla.model.errors import OttlaError

if TYPE_CHECKING:
    from ottla.pipelines.backup.manifest import Manifest
    from ottla.pipelines.backup.running import RunOptions

EVERY = "1 minute"
EXAMPLES = """
  %(prog)s ./backups                                     every topic; run again, it takes what is new
  %(prog)s ./backups --topics 'orders|payments\\..*'      only these
  %(prog)s s3://bucket/kafka --format raw                batches as they lie in the log
  %(prog)s backup.yaml --continuous                      an increment every minute, until Ctrl-C
"""
NOTES = """
What is taken: records up to the last stable offset, settings, partitions and ids of topics, the offsets of groups
(last), ACLs, quotas, and the names of SCRAM users: brokers tell nobody their salted passwords. Schemas are records of
the topic _schemas. A run that was killed is gone on with by the next one.
"""


def main(argv: Sequence[str] | None = None, prog: str = "ottla backup run") -> int:
    parser = ToolParser(prog, "Take a backup: everything, or what is new since the last one.", EXAMPLES, notes=NOTES)
    add_place(parser, to=True)
    parser.add_argument("--topics", metavar="RE", help="topics whose whole name matches (default: all)")
    parser.add_argument("--groups", metavar="RE", help="consumer groups whose offsets are taken (default: all)")
    parser.add_argument(
        "--format", choices=("parquet", "raw"),
        help="parquet: rows that any engine can query (default); raw: batches as they are, transactions and codecs too",
    )  # fmt: skip
    parser.add_argument("--full", action="store_true", help="from the beginning of every log, not an increment")
    parser.add_argument("--continuous", action="store_true", help="an increment again and again, until Ctrl-C")
    parser.add_argument("--every", metavar="TIME", help=f"between increments of --continuous (default: {EVERY})")
    parser.add_argument("--keep", type=int, metavar="N", help="prune afterwards: so many backups stay")
    add_brokers(parser, f"the cluster (default: the file's, ${BOOTSTRAP_VARIABLE}, or else {DEFAULT_BOOTSTRAP})")
    add_master(parser)
    add_json(parser)
    args = parser.parse(argv)
    from ottla.pipelines.backup.running import RunOptions

    where = where_of(args)
    file = where.file
    options = RunOptions(
        place=where.place, client=client_of(args, file),
        topics=args.topics or (file.topics if file else ".*"), groups=args.groups or (file.groups if file else ".*"),
        kind=args.format or (file.kind if file else "parquet"), full=args.full, only_changes=args.continuous,
    )  # fmt: skip
    keep = args.keep if args.keep is not None or file is None else file.keep
    if not args.continuous:
        _once(options, args, keep)
        return 0
    every_s = parse_length(args.every or (file.every if file else EVERY), "--every")
    ending = threading.Event()
    with ending_in_order(ending.set):
        _once(options, args, keep)  # what is wrong with the command is wrong at once
        while not ending.wait(every_s):
            try:
                _once(options._replace(full=False), args, keep)
            except (OttlaError, OSError) as error:
                warn(f"no increment this time: {error}")
    return 0


def _once(options: "RunOptions", args: argparse.Namespace, keep: int | None) -> None:
    from ottla.pipelines.backup.pruning import prune_place
    from ottla.pipelines.backup.running import run_backup

    started = time.monotonic()
    with Progress(json=args.json) as progress:
        manifest = run_backup(options, opener(args, "run"), progress)
    if manifest is None:
        return
    _show(manifest, time.monotonic() - started, json=args.json)
    if keep is not None:
        prune_place(options.place, keep=keep, older_than_ms=None, now_ms=time.time_ns() // 1_000_000)


def _show(manifest: "Manifest", seconds: float, *, json: bool) -> None:
    own = [stored for _, stored in manifest.objects() if f"/{manifest.id}/" in stored.path]
    new_records, new_bytes = sum(each.records for each in own), sum(each.bytes for each in own)
    if json:
        told = {
            "event": "done", "backup": manifest.id, "parent": manifest.parent, "format": manifest.kind,
            "topics": len(manifest.topics), "groups": len(manifest.groups), "records": manifest.records,
            "bytes": manifest.bytes, "new_records": new_records, "new_bytes": new_bytes,
            "seconds": round(seconds, 3), "notes": manifest.notes,
        }  # fmt: skip
        print_json(told)
        return
    kind = "everything" if manifest.parent is None else f"an increment behind {manifest.parent}"
    print(f"backup {manifest.id}: {kind}")
    print(f"  {len(manifest.topics)} topics, {manifest.records:,} records, {readable_bytes(manifest.bytes)} in objects")
    print(f"  new: {new_records:,} records, {readable_bytes(new_bytes)}, in {seconds:.1f} s")
    print(f"  {len(manifest.groups)} groups, {_count(manifest.acls)} ACLs, {_count(manifest.quotas)} quotas")


def _count(found: Sequence[object] | None) -> str:
    return "no" if found is None else str(len(found))
