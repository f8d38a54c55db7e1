"""`ottla mirror`: topics of one cluster in another, on Spark; `ottla mirror status` shows how far it is."""

import sys
from collections.abc import Sequence
from pathlib import Path

from ottla.cli.common.options import ToolParser
from ottla.cli.common.output import print_json
from ottla.cli.pipeline.mirroring import add_mirror_options, run_mirror
from ottla.cli.pipeline.options import add_json, add_state_dir

EXAMPLES = """
  %(prog)s mirror.yaml
  %(prog)s mirror.yaml --once               copy what is there now, then end
  %(prog)s status mirror.yaml               rates and lag of each flow
"""


def main(argv: Sequence[str] | None = None, prog: str = "ottla mirror") -> int:
    arguments = list(sys.argv[1:] if argv is None else argv)
    if arguments[:1] == ["status"]:
        return _status(arguments[1:], f"{prog} status")
    parser = ToolParser(prog, "Mirror topics between clusters until it is stopped (Ctrl-C).", EXAMPLES)
    parser.add_argument("file", type=Path, metavar="FILE", help="the mirror: clusters and flows, in YAML")
    add_mirror_options(parser)
    args = parser.parse(arguments)
    from ottla.pipelines.mirror.spec import load_mirror

    return run_mirror(load_mirror(args.file), args.file, args)


def _status(argv: Sequence[str], prog: str) -> int:
    parser = ToolParser(prog, "Show how the flows of a mirror get on. Exit code 0 if all of them run.", "")
    parser.add_argument("file", type=Path, metavar="FILE", help="the mirror: clusters and flows, in YAML")
    add_json(parser)
    add_state_dir(parser)
    args = parser.parse(argv)
    from ottla.cli.pipeline.display import status_table, wide_console
    from ottla.pipelines.mirror.looking import look_at_flows
    from ottla.pipelines.mirror.spec import load_mirror

    found = look_at_flows(load_mirror(args.file), args.file, args.state_dir)
    if args.json:
        print_json(found)
        return 0 if all(flow["running"] for flow in found) else 1
    wide_console().print(status_table({"pipelines": [flow for flow in found if flow["queries"]]}))
    for flow in found:
        state = f"runs in process {flow['pid']}" if flow["running"] else flow["state"]
        behind = "nothing is known of its lag" if flow["lag_records"] is None else (
            f"{flow['lag_records']:,} records and {flow['lag_seconds']:.1f} s behind"
        )  # fmt: skip
        print(f"{flow['pipeline']}: {state}; {behind}")
    return 0 if all(flow["running"] for flow in found) else 1
