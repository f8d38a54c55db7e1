"""`ottla mirror status`: how the flows of a mirror get on."""

from collections.abc import Sequence
from pathlib import Path

from ottla.cli.common.options import ToolParser
from ottla.cli.common.output import print_json
from ottla.cli.pipeline.options import add_json, add_state_dir


def status(argv: Sequence[str], prog: str) -> int:
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
        if flow["paused"]:
            state += ", paused"
        behind = "nothing is known of its lag" if flow["lag_records"] is None else (
            f"{flow['lag_records']:,} records and {flow['lag_seconds']:.1f} s behind"
        )  # fmt: skip
        kind = " (standby)" if flow["standby"] else ""
        print(f"{flow['pipeline']}{kind}: {state}; {behind}")
    return 0 if all(flow["running"] for flow in found) else 1
