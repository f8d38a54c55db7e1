"""`kafka-server-stop`: stop the brokers of this user on this machine."""

from collections.abc import Sequence

from ottla.cli.common.options import ToolParser
from ottla.cli.local import processes
from ottla.cli.local.stopping import stop_all

EXAMPLES = """
  %(prog)s
  %(prog)s --node-id 2

Brokers finish the requests under way, hand over what they lead and write everything to disk. The brokers of a test kit
are not found, and neither are those of other users.
"""


def main(argv: Sequence[str] | None = None, prog: str = "ottla server-stop") -> int:
    parser = ToolParser(prog, "Stop the brokers on this machine.", EXAMPLES, help_without_arguments=False)
    parser.add_argument("--node-id", type=int, metavar="ID", help="only the broker with this node.id")
    parser.add_argument(
        "--process-role", choices=("broker", "controller"), help="as in Kafka; every node here is both, so it is all"
    )
    args = parser.parse(argv)
    found = processes.running(processes.BROKER)
    if args.node_id is not None:
        found = [process for process in found if process.node_id == args.node_id]
    return stop_all(found, nothing="No kafka server to stop", what="broker")
