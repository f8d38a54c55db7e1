"""`ottla pipeline test`: a file's tests on their fixtures, without a broker."""

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from rich.table import Table

from ottla.cli.common.options import ToolParser, parse_pairs
from ottla.cli.common.output import CommandError, note, print_json
from ottla.cli.pipeline.display import wide_console
from ottla.cli.pipeline.options import add_files, add_json, add_spark, brief_spark

if TYPE_CHECKING:
    from ottla.pipelines.runner.cases import Difference, Outcome

EXAMPLES = """
  %(prog)s orders.yaml
  %(prog)s pipelines/*.yaml --json
"""
ROWS_SHOWN_MAX = 20


def main(argv: Sequence[str] | None = None, prog: str = "ottla pipeline test") -> int:
    parser = ToolParser(prog, "Run the `tests` of pipeline files: fixtures in, rows compared. No broker.", EXAMPLES)
    add_files(parser)
    add_json(parser)
    add_spark(parser)
    args = parser.parse(argv)
    from ottla.pipelines.lint import check_file

    checked = [check_file(path) for path in args.files]
    without = [each.name for each in checked if not each.spec.tests]
    if len(without) == len(checked):
        raise CommandError("there are no tests in these files; write `tests: [{given: {SOURCE: FILE}, expect: FILE}]`")
    if without:
        note(f"no tests in {', '.join(without)}")
    outcomes = _run(args)
    if args.json:
        documents = [{"file": str(path), "passed": each.passed, **asdict(each)} for path, each in outcomes]
        print_json(documents)
    else:
        for path, outcome in outcomes:
            _show(path, outcome)
    failed = sum(not outcome.passed for _, outcome in outcomes)
    if not args.json:
        print(f"{len(outcomes) - failed} passed, {failed} failed")
    return 1 if failed else 0


def _run(args: argparse.Namespace) -> "list[tuple[Path, Outcome]]":
    from ottla.pipelines.runner.cases import run_case
    from ottla.pipelines.runner.deploy import deploy

    conf = parse_pairs(args.conf, "--conf")
    with brief_spark("tests of pipelines", args.master, conf, own_workers=True) as spark:
        outcomes = []
        for path in args.files:
            deployment = deploy(path, bootstrap=None, state_dir=Path())
            for number, case in enumerate(deployment.checked.spec.tests, 1):
                outcomes.append((path, run_case(case, number, deployment, spark)))
        return outcomes


def _show(path: Path, outcome: "Outcome") -> None:
    verdict = "passed" if outcome.passed else "FAILED"
    letters = f", {len(outcome.dead_letters)} dead letters" if outcome.dead_letters else ""
    print(f"{path}: {outcome.name}: {verdict} ({outcome.rows} rows{letters})")
    if outcome.error:
        print(f"  {outcome.error}")
    for difference in outcome.differences:
        _show_difference(difference)
    sys.stdout.flush()


def _show_difference(difference: "Difference") -> None:
    title = f"{difference.place}: {len(difference.missing)} missing, {len(difference.unexpected)} unexpected"
    table = Table("", *difference.columns, title=title, title_justify="left", show_edge=False)
    for mark, rows in (("missing", difference.missing), ("unexpected", difference.unexpected)):
        for row in rows[:ROWS_SHOWN_MAX]:
            table.add_row(mark, *(_cell(row.get(column)) for column in difference.columns))
        if len(rows) > ROWS_SHOWN_MAX:
            table.add_row(f"... and {len(rows) - ROWS_SHOWN_MAX} more")
    wide_console().print(table, markup=False)


def _cell(value: object) -> str:
    return "" if value is None else value if isinstance(value, str) else json.dumps(value, default=str)
