"""`ottla backup verify`: read everything back, compare counts, offsets and checksums."""

import time
from collections.abc import Sequence

from ottla.cli.common.options import ToolParser
from ottla.cli.common.output import complain, print_json
from ottla.cli.pipeline.backup_options import Progress, add_master, add_place, opener, readable_bytes, where_of
from ottla.cli.pipeline.options import add_json

EXAMPLES = """
  %(prog)s ./backups                             all backups; what they share is read once
  %(prog)s ./backups 20261117T103000.000Z        only this one
"""


def main(argv: Sequence[str] | None = None, prog: str = "ottla backup verify") -> int:
    parser = ToolParser(prog, "Read backups back and compare them. Exit code 1 if anything is wrong.", EXAMPLES)
    add_place(parser)
    parser.add_argument("backup", nargs="?", metavar="BACKUP", help="only this one (default: all)")
    add_master(parser)
    add_json(parser)
    args = parser.parse(argv)
    from ottla.pipelines.backup.catalogue import choose, read_catalogue
    from ottla.pipelines.backup.verifying import verify

    where = where_of(args)
    catalogue = read_catalogue(where.place)
    wanted = catalogue.manifests
    if args.backup or not (wanted or catalogue.damaged):
        wanted = [choose(catalogue, where.place, args.backup)]
    started = time.monotonic()
    with Progress(json=args.json) as progress:
        found = verify(where.place, wanted, opener(args, "verify"), progress)
    seconds = time.monotonic() - started
    problems = [*([] if args.backup else catalogue.damaged.values()), *found.problems]
    if args.json:
        print_json({"event": "done", **found._asdict(), "problems": problems, "seconds": round(seconds, 3)})
        return 1 if problems else 0
    for text in problems:
        complain(text)
    verdict = "all is as it was written" if not problems else f"{len(problems)} problems"
    print(
        f"{len(found.backups)} backups, {found.objects} objects, {found.records:,} records, "
        f"{readable_bytes(found.bytes)} read in {seconds:.1f} s: {verdict}"
    )
    return 1 if problems else 0
