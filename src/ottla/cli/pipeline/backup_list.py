"""`ottla backup list`: the backups of a place."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ottla.cli.common.options import ToolParser
from ottla.cli.common.output import print_columns, print_json, warn
from ottla.cli.pipeline.backup_options import add_place, readable_bytes, readable_time, where_of
from ottla.cli.pipeline.options import add_json

if TYPE_CHECKING:
    from ottla.pipelines.backup.manifest import Manifest

EXAMPLES = """
  %(prog)s ./backups
  %(prog)s ./backups --topics 20261117T103000.000Z      the topics of one backup
  %(prog)s s3://bucket/kafka --json
"""


def main(argv: Sequence[str] | None = None, prog: str = "ottla backup list") -> int:
    parser = ToolParser(prog, "Show the backups of a place. Exit code 1 if a manifest is damaged.", EXAMPLES)
    add_place(parser)
    parser.add_argument("--topics", metavar="BACKUP", help="show the topics of this backup, partition by partition")
    add_json(parser)
    args = parser.parse(argv)
    from ottla.pipelines.backup.catalogue import choose, read_catalogue

    where = where_of(args)
    catalogue = read_catalogue(where.place)
    if args.topics:
        _show_topics(choose(catalogue, where.place, args.topics), json=args.json)
        return 0
    if args.json:
        print_json(
            {
                "place": str(where.place),
                "backups": [_told(manifest) for manifest in catalogue.manifests],
                "damaged": catalogue.damaged,
                "unfinished": sorted(catalogue.unfinished),
            }
        )
        return 1 if catalogue.damaged else 0
    rows = [
        (
            manifest.id, readable_time(manifest.taken_ms), "full" if manifest.parent is None else "increment",
            manifest.kind, len(manifest.topics), f"{manifest.records:,}", readable_bytes(manifest.bytes),
            readable_bytes(_told(manifest)["new_bytes"]), len(manifest.groups),
        )
        for manifest in catalogue.manifests
    ]  # fmt: skip
    head = ("BACKUP", "TAKEN (UTC)", "KIND", "FORMAT", "TOPICS", "RECORDS", "BYTES", "NEW", "GROUPS")
    if rows:
        print_columns([head, *rows], gap=2)
    elif not catalogue.damaged:
        print(f"{where.place} has no backups")
    for backup in catalogue.unfinished:
        warn(f"{backup} was cut short, or is under way: the next run goes on with it")
    for text in catalogue.damaged.values():
        warn(text)
    return 1 if catalogue.damaged else 0


def _told(manifest: "Manifest") -> dict[str, Any]:
    own = [stored for _, stored in manifest.objects() if f"/{manifest.id}/" in stored.path]
    return {
        "backup": manifest.id, "parent": manifest.parent, "taken_ms": manifest.taken_ms, "format": manifest.kind,
        "cluster_id": manifest.cluster_id, "topics": [topic.name for topic in manifest.topics],
        "groups": [group.group for group in manifest.groups], "records": manifest.records, "bytes": manifest.bytes,
        "new_records": sum(each.records for each in own), "new_bytes": sum(each.bytes for each in own),
        "notes": manifest.notes,
    }  # fmt: skip


def _show_topics(manifest: "Manifest", *, json: bool) -> None:
    found = [
        {
            "topic": topic.name, "partition": each.partition, "log_start": each.log_start, "end": each.end,
            "records": each.records, "objects": len(each.objects), "bytes": sum(part.bytes for part in each.objects),
            "same_offsets": each.is_dense,
        }
        for topic in manifest.topics
        for each in topic.partitions
    ]  # fmt: skip
    if json:
        print_json({"backup": manifest.id, "partitions": found})
        return
    head = ("TOPIC", "PARTITION", "START", "END", "RECORDS", "OBJECTS", "BYTES", "SAME OFFSETS")
    print_columns([head, *([*each.values()] for each in found)], gap=2)
