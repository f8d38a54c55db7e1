"""`ottla pipeline reprocess`: all of history into a new version of the outputs, beside the live one."""

from collections.abc import Sequence

from ottla.cli.common.options import ToolParser
from ottla.cli.pipeline.options import (
    add_bootstrap,
    add_file,
    add_json,
    add_spark,
    add_state_dir,
    add_version,
    asked_spark,
    ending_in_order,
)

EXAMPLES = """
  %(prog)s orders.yaml --version v2     orders.enriched becomes orders.enriched.v2, ./lake ./lake_v2
  %(prog)s orders.yaml --version v2     again: catches up from where it was
"""


def main(argv: Sequence[str] | None = None, prog: str = "ottla pipeline reprocess") -> int:
    parser = ToolParser(
        prog,
        "Run a pipeline from the beginning of its topics into a new version of its outputs.",
        EXAMPLES,
        shows_version=False,
    )
    add_file(parser)
    add_version(parser, "how the version is called, such as v2")
    add_json(parser)
    add_bootstrap(parser)
    add_state_dir(parser)
    add_spark(parser)
    args = parser.parse(argv)
    from ottla.cli.pipeline.display import choose_display
    from ottla.pipelines.runner.brokers import check_brokers
    from ottla.pipelines.runner.deploy import deploy
    from ottla.pipelines.runner.driver import Driver

    deployment = deploy(
        args.file, bootstrap=args.bootstrap_server, state_dir=args.state_dir, version=args.output_version
    )
    check_brokers([deployment])
    driver = Driver([deployment], once=True, beside=True)
    with ending_in_order(driver.stop), choose_display(json=args.json) as display:
        well = driver.run(lambda: asked_spark(args, deployment.plan.name), display.tell, display.show)
    if well and not args.json:
        print(f"version {args.output_version} of {deployment.plan.name} has caught up; make it the live one with")
        print(f"  ottla pipeline switch {args.file} --version {args.output_version}")
    return 0 if well else 1
