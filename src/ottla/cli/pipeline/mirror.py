"""`ottla mirror`: topics of one cluster in another, on Spark; with the commands for what happens to a mirror."""

import sys
from collections.abc import Sequence
from pathlib import Path

from ottla.cli.common.options import ToolParser
from ottla.cli.pipeline.mirror_status import status
from ottla.cli.pipeline.mirror_switching import fail_back, pause, promote, resume
from ottla.cli.pipeline.mirroring import add_mirror_options, run_mirror

EXAMPLES = """
  %(prog)s mirror.yaml
  %(prog)s mirror.yaml --once               copy what is there now, then end
  %(prog)s status mirror.yaml               rates and lag of each flow
  %(prog)s pause mirror.yaml                rest, until `resume`
  %(prog)s promote mirror.yaml              a standby's topics become ordinary ones: clients can switch to it
  %(prog)s failback mirror.yaml             the old active cluster becomes the standby
"""

COMMANDS = {"status": status, "pause": pause, "resume": resume, "promote": promote, "failback": fail_back}


def main(argv: Sequence[str] | None = None, prog: str = "ottla mirror") -> int:
    arguments = list(sys.argv[1:] if argv is None else argv)
    if arguments[:1] and arguments[0] in COMMANDS:
        return COMMANDS[arguments[0]](arguments[1:], f"{prog} {arguments[0]}")
    parser = ToolParser(prog, "Mirror topics between clusters until it is stopped (Ctrl-C).", EXAMPLES)
    parser.add_argument("file", type=Path, metavar="FILE", help="the mirror: clusters and flows, in YAML")
    add_mirror_options(parser)
    args = parser.parse(arguments)
    from ottla.pipelines.mirror.spec import load_mirror

    return run_mirror(load_mirror(args.file), args.file, args)
