"""What the commands that mirror share: their options, and a mirror's life."""

import argparse
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from ottla.cli.common.listening import add_listen
from ottla.cli.common.options import ToolParser
from ottla.cli.common.output import warn
from ottla.cli.pipeline.options import add_json, add_spark, add_state_dir, asked_spark, ending_in_order

if TYPE_CHECKING:
    from ottla.pipelines.mirror.spec import Mirror


def add_mirror_options(parser: ToolParser) -> None:
    add_json(parser)
    add_state_dir(parser)
    add_spark(parser)
    parser.add_argument("--once", action="store_true", help="copy what is there now, then end")
    add_listen(parser, "the HTTP status", default="127.0.0.1:0", port_alone=True)


def say_notes(notes: Iterable[str]) -> None:
    """Settings that do nothing here are said, so that nobody relies on them."""
    for note in notes:
        warn(note)


def run_mirror(mirror: "Mirror", path: Path, args: argparse.Namespace) -> int:
    from ottla.cli.pipeline.display import choose_display
    from ottla.pipelines.mirror.flows import deploy_flow, flow_name, keeper_of
    from ottla.pipelines.mirror.keeping import Keeping
    from ottla.pipelines.runner.driver import Driver
    from ottla.pipelines.runner.supervisor import Event

    deployments = [deploy_flow(mirror, flow, path, args.state_dir) for flow in mirror.flows]
    driver = Driver(deployments, once=args.once, listen=args.listen)
    with ending_in_order(driver.stop), choose_display(json=args.json) as display:

        def tell(flow: str, text: str) -> None:
            display.tell(Event(f"{mirror.name}.{flow}", None, "mirror", text))

        keepers = [
            keeper_of(mirror, flow, deployment, tell)
            for flow, deployment in zip(mirror.flows, deployments, strict=True)
        ]
        names = ", ".join(flow_name(mirror, flow) for flow in mirror.flows)
        with Keeping(keepers):
            well = driver.run(lambda: asked_spark(args, names), display.tell, display.show)
    return 0 if well else 1
