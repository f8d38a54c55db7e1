"""`ottla pipeline status`: how pipelines get on, from their drivers or from what those left behind."""

from collections.abc import Sequence

from ottla.cli.common.options import ToolParser
from ottla.cli.common.output import print_json
from ottla.cli.pipeline.options import add_files, add_json, add_state_dir

EXAMPLES = """
  %(prog)s orders.yaml
  %(prog)s *.yaml --json
"""


def main(argv: Sequence[str] | None = None, prog: str = "ottla pipeline status") -> int:
    parser = ToolParser(prog, "Show how pipelines get on. Exit code 0 if all of them run.", EXAMPLES)
    add_files(parser)
    add_json(parser)
    add_state_dir(parser)
    args = parser.parse(argv)
    from ottla.cli.pipeline.display import status_table, wide_console
    from ottla.pipelines.lint import check_file
    from ottla.pipelines.runner.looking import look_at

    found = [look_at(args.state_dir, check_file(path).name) for path in args.files]
    if args.json:
        print_json(found)
    else:
        for status in found:
            running = f"runs in process {status['pid']}, {status['http']}" if status["running"] else status["state"]
            version = f", version {status['active_version']} is live" if status["active_version"] else ""
            print(f"{status['pipeline']}: {running}{version}")
            if status["queries"]:
                wide_console().print(status_table({"pipelines": [status]}))
            for query in status["queries"]:
                if query["error"]:
                    print(f"  {query['query']}: last error: {query['error']}")
            for name, other in status["versions"].items():
                if name != status["active_version"]:
                    print(f"  version {name}: {'running' if other['running'] else other['state']}")
    return 0 if all(status["running"] for status in found) else 1
