"""`ottla pipeline plan`: the queries that a file becomes."""

from collections.abc import Sequence

from ottla.cli.common.options import ToolParser
from ottla.cli.common.output import print_json
from ottla.cli.pipeline.options import add_files, add_json, add_version

EXAMPLES = """
  %(prog)s orders.yaml
  %(prog)s orders.yaml --version v2 --json
"""


def main(argv: Sequence[str] | None = None, prog: str = "ottla pipeline plan") -> int:
    parser = ToolParser(
        prog,
        "Show the queries, groups and transactions that files become. Nothing is run.",
        EXAMPLES,
        shows_version=False,
    )
    add_files(parser)
    add_json(parser)
    add_version(parser, "as this version of the outputs would be", required=False)
    args = parser.parse(argv)
    from ottla.pipelines.lint import check_file
    from ottla.pipelines.plan import describe, make_plan, tree_lines
    from ottla.pipelines.versions import with_version

    plans = [make_plan(with_version(check_file(path), args.output_version), args.output_version) for path in args.files]
    if args.json:
        print_json([describe(plan) for plan in plans])
        return 0
    for plan in plans:
        for depth, text in tree_lines(plan):
            print(f"{'  ' * depth}{text}")
    return 0
