"""`ottla pipeline lint`: every mistake of pipeline files, found without Spark and without a broker."""

from collections.abc import Sequence

from ottla.cli.options import ToolParser
from ottla.cli.output import complain, print_json
from ottla.cli.pipeline_options import add_files, add_json

EXAMPLES = """
  %(prog)s orders.yaml
  %(prog)s pipelines/*.yaml --json
"""


def main(argv: Sequence[str] | None = None, prog: str = "ottla pipeline lint") -> int:
    parser = ToolParser(prog, "Find every mistake in pipeline files. Nothing is started.", EXAMPLES)
    add_files(parser)
    add_json(parser)
    args = parser.parse(argv)
    from ottla.pipelines.errors import InvalidPipeline
    from ottla.pipelines.lint import check_file

    found: dict[str, list[str]] = {}
    for path in args.files:
        try:
            checked = check_file(path)
        except InvalidPipeline as error:
            found[str(path)] = error.problems
            if not args.json:
                complain(str(error))
        else:
            found[str(path)] = []
            if not args.json:
                sinks = sum(1 for _ in checked.sinks())
                print(f"{path}: pipeline {checked.name} is fine ({sinks} sink{'s' if sinks != 1 else ''})")
    if args.json:
        print_json([{"file": path, "problems": problems} for path, problems in found.items()])
    return 1 if any(found.values()) else 0
