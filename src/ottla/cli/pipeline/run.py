"""`ottla pipeline run`: pipelines on Spark, many in one driver."""

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ottla.cli.common.listening import add_listen
from ottla.cli.common.options import ToolParser
from ottla.cli.common.output import print_json
from ottla.cli.pipeline.options import (
    add_bootstrap,
    add_files,
    add_json,
    add_spark,
    add_state_dir,
    add_version,
    asked_spark,
    ending_in_order,
)

if TYPE_CHECKING:
    from ottla.pipelines.runner.batches import Counters

EXAMPLES = """
  %(prog)s orders.yaml
  %(prog)s orders.yaml payments.sql --master spark://head:7077 --conf spark.executor.memory=2g
  %(prog)s orders.yaml --once               read what is there now, then end
  %(prog)s orders.yaml --batch              the same file over all of history, as a batch
"""


def main(argv: Sequence[str] | None = None, prog: str = "ottla pipeline run") -> int:
    parser = ToolParser(
        prog, "Run pipelines until they are stopped (Ctrl-C, or `ottla pipeline stop`).", EXAMPLES, shows_version=False
    )
    add_files(parser)
    add_json(parser)
    add_bootstrap(parser)
    add_state_dir(parser)
    add_spark(parser)
    parser.add_argument("--once", action="store_true", help="process what is there now, then end")
    parser.add_argument("--batch", action="store_true", help="all of history as one batch, on static frames, then end")
    add_version(parser, "with --batch: write to this version of the outputs", required=False)
    add_listen(parser, "the HTTP status", default="127.0.0.1:0", port_alone=True)
    args = parser.parse(argv)
    if args.output_version and not args.batch:
        parser.error("--version goes with --batch; `ottla pipeline reprocess` makes a version as a stream")
    return _run_batch(args) if args.batch else _run_streams(args)


def _run_streams(args: argparse.Namespace) -> int:
    from ottla.cli.pipeline.display import choose_display
    from ottla.pipelines.runner.brokers import check_brokers
    from ottla.pipelines.runner.deploy import deploy_active
    from ottla.pipelines.runner.driver import Driver

    deployments = [
        deploy_active(path, bootstrap=args.bootstrap_server, state_dir=args.state_dir) for path in args.files
    ]
    check_brokers(deployments)
    driver = Driver(deployments, once=args.once, listen=args.listen)
    names = ", ".join(deployment.plan.name for deployment in deployments)
    with ending_in_order(driver.stop), choose_display(json=args.json) as display:
        small = all(deployment.has_small_batches for deployment in deployments)
        well = driver.run(lambda: asked_spark(args, names, small_batches=small), display.tell, display.show)
    return 0 if well else 1


def _run_batch(args: argparse.Namespace) -> int:
    from ottla.pipelines.runner.brokers import check_brokers
    from ottla.pipelines.runner.deploy import deploy
    from ottla.pipelines.runner.history import run_history

    deployments = [
        deploy(path, bootstrap=args.bootstrap_server, state_dir=args.state_dir, version=args.output_version)
        for path in args.files
    ]
    check_brokers(deployments)
    with asked_spark(args, ", ".join(deployment.plan.name for deployment in deployments)) as spark:
        for deployment in deployments:
            for query, counted in run_history(deployment, spark).items():
                _say_done(deployment.plan.name, query, counted, json=args.json)
    return 0


def _say_done(pipeline: str, query: str, counted: "Counters", *, json: bool) -> None:
    if json:
        print_json(
            {
                "event": "done",
                "pipeline": pipeline,
                "query": query,
                "sink_rows": counted.rows,
                "dead_letters": counted.dead_letters,
            }
        )
    else:
        rows = ", ".join(f"{count:,} rows to {sink}" for sink, count in counted.rows.items())
        print(f"{pipeline} {query}: {rows or 'done'}, {counted.dead_letters} dead letters")
