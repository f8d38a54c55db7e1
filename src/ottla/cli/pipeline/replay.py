"""`ottla pipeline replay-dead-letters`: chosen dead letters back to the topics that they came from."""

from collections.abc import Sequence
from dataclasses import asdict

from rich.table import Table

from ottla.cli.common.options import ToolParser
from ottla.cli.common.output import print_json
from ottla.cli.pipeline.display import wide_console
from ottla.cli.pipeline.options import (
    add_bootstrap,
    add_file,
    add_json,
    add_spark,
    add_state_dir,
    asked_spark,
)

EXAMPLES = """
  %(prog)s orders.yaml --all --dry-run                  what is there that was not sent back yet
  %(prog)s orders.yaml --where "step = '3 expect'"      those that broke the rule
  %(prog)s orders.yaml --where "source_topic = 'orders' AND error LIKE '%%amount%%'"
  %(prog)s orders.yaml --offsets 0:12,0:15              by their places in the dead-letter topic
"""
SHOWN_MAX = 50


def main(argv: Sequence[str] | None = None, prog: str = "ottla pipeline replay-dead-letters") -> int:
    parser = ToolParser(
        prog, "Send dead letters back to where they came from, as they were. Each is sent once, ever.", EXAMPLES
    )
    add_file(parser)
    parser.add_argument("--all", action="store_true", help="every letter that was not sent back yet")
    parser.add_argument("--where", metavar="SQL", help="only those for which this is true")
    parser.add_argument("--offsets", metavar="P:O,...", help="only these partitions and offsets of the dead letters")
    parser.add_argument("--dry-run", action="store_true", help="show them, send none")
    add_json(parser)
    add_bootstrap(parser)
    add_state_dir(parser)
    add_spark(parser)
    args = parser.parse(argv)
    if not (args.all or args.where or args.offsets):
        parser.error("say which: --all, --where or --offsets; with --dry-run nothing is sent")
    from ottla.pipelines.runner.brokers import check_brokers
    from ottla.pipelines.runner.deploy import deploy_active
    from ottla.pipelines.runner.replay import parse_places, replay

    places = parse_places(args.offsets) if args.offsets else []
    deployment = deploy_active(args.file, bootstrap=args.bootstrap_server, state_dir=args.state_dir)
    check_brokers([deployment])
    with asked_spark(args, f"{deployment.plan.name} replay", short_lived=True) as spark:
        letters = replay(deployment, spark, where=args.where, places=places, send=not args.dry_run)
    if args.json:
        print_json({"sent": not args.dry_run, "letters": [asdict(letter) for letter in letters]})
        return 0
    if letters:
        table = Table("letter", "step", "error", "from", show_edge=False)
        for letter in letters[:SHOWN_MAX]:
            origin = f"{letter.source_topic} {letter.source_partition}:{letter.source_offset}"
            table.add_row(f"{letter.partition}:{letter.offset}", letter.step, letter.error, origin)
        wide_console().print(table, markup=False)
    more = f" ({len(letters) - SHOWN_MAX} more than shown)" if len(letters) > SHOWN_MAX else ""
    verb = "would be sent back" if args.dry_run else "sent back"
    print(f"{len(letters)} dead letter{'s' if len(letters) != 1 else ''} {verb}{more}")
    return 0
