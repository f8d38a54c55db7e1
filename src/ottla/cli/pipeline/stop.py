"""`ottla pipeline stop`: a running pipeline finishes its batch and ends."""

from collections.abc import Sequence

from ottla.cli.common.options import ToolParser
from ottla.cli.pipeline.options import add_files, add_state_dir

EXAMPLES = """
  %(prog)s orders.yaml
"""


def main(argv: Sequence[str] | None = None, prog: str = "ottla pipeline stop") -> int:
    parser = ToolParser(
        prog, "Let running pipelines finish their batch and end. Other ones of the driver go on.", EXAMPLES
    )
    add_files(parser)
    add_state_dir(parser)
    parser.add_argument(
        "--timeout", type=float, default=120.0, metavar="SECONDS", help="how long to wait (default: 120)"
    )
    args = parser.parse(argv)
    from ottla.pipelines.lint import check_file
    from ottla.pipelines.runner.looking import stop

    for path in args.files:
        name = check_file(path).name
        stop(args.state_dir, name, args.timeout)
        print(f"{name} has stopped")
    return 0
