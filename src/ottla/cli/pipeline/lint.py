"""`ottla pipeline lint`: every mistake of pipeline files, found without a Spark session and without a broker."""

from collections.abc import Sequence

from ottla.cli.common.options import ToolParser
from ottla.cli.common.output import complain, print_json, warn
from ottla.cli.pipeline.options import add_files, add_json

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
    from ottla.pipelines.lint import check_with_sql
    from ottla.pipelines.spark_grammar import SparkGrammar

    documents: list[dict[str, object]] = []
    with SparkGrammar() as grammar:
        for path in args.files:
            problems: list[str] = []
            unchecked: list[str] = []
            try:
                checked, unchecked = check_with_sql(path, grammar.refuses)
            except InvalidPipeline as error:
                problems = error.problems
                if not args.json:
                    complain(str(error))
            else:
                if not args.json:
                    sinks = sum(1 for _ in checked.sinks())
                    for text in unchecked:
                        warn(f"{path}: {text}")
                    print(f"{path}: pipeline {checked.name} is fine ({sinks} sink{'s' if sinks != 1 else ''})")
            documents.append({"file": str(path), "problems": problems, "unchecked": unchecked})
    if args.json:
        print_json(documents)
    return 1 if any(document["problems"] for document in documents) else 0
