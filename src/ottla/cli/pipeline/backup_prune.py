"""`ottla backup prune`: old backups go, with the objects that no other one needs."""

import time
from collections.abc import Sequence

from ottla.cli.common.options import ToolParser
from ottla.cli.common.output import print_json
from ottla.cli.pipeline.backup_options import add_place, parse_length, where_of
from ottla.cli.pipeline.options import add_json

EXAMPLES = """
  %(prog)s ./backups --keep 7                    the seven newest stay
  %(prog)s ./backups --older-than 30d            those of the last thirty days stay, and always the newest
  %(prog)s ./backups --keep 7 --older-than 30d   a backup goes if both say so
"""


def main(argv: Sequence[str] | None = None, prog: str = "ottla backup prune") -> int:
    parser = ToolParser(prog, "Delete old backups, and nothing that a kept one needs.", EXAMPLES)
    add_place(parser)
    parser.add_argument("--keep", type=int, metavar="N", help="so many of the newest stay")
    parser.add_argument("--older-than", metavar="TIME", help="only older ones go: 30d, 12 hours")
    parser.add_argument(
        "--unfinished",
        action="store_true",
        help="also what runs left that were cut short, and will not be gone on with",
    )
    parser.add_argument("--dry-run", action="store_true", help="only say what would go")
    add_json(parser)
    args = parser.parse(argv)
    from ottla.pipelines.backup.pruning import prune_place

    where = where_of(args)
    older_ms = None if args.older_than is None else int(parse_length(args.older_than, "--older-than") * 1000)
    found = prune_place(
        where.place, keep=args.keep, older_than_ms=older_ms, now_ms=time.time_ns() // 1_000_000,
        unfinished=args.unfinished, dry_run=args.dry_run,
    )  # fmt: skip
    if args.json:
        print_json({"kept": found.keep, "deleted": found.drop, "objects": len(found.delete), "dry_run": args.dry_run})
        return 0
    would = "would go" if args.dry_run else "are gone"
    for backup in found.drop:
        print(backup)
    print(f"{len(found.drop)} backups and {len(found.delete)} objects {would}; {len(found.keep)} backups stay")
    return 0
