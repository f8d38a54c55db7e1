"""`zookeeper-server-stop`: stop the ZooKeeper servers that this user has started on this machine."""

from collections.abc import Sequence

from ottla.cli.common.options import ToolParser
from ottla.cli.local import processes
from ottla.cli.local.stopping import stop_all

EXAMPLES = """
  %(prog)s

Servers started with `ottla zookeeper` or zookeeper-server-start are found, and no others.
"""


def main(argv: Sequence[str] | None = None, prog: str = "ottla zookeeper-stop") -> int:
    parser = ToolParser(prog, "Stop the ZooKeeper servers on this machine.", EXAMPLES, help_without_arguments=False)
    parser.parse(argv)
    found = processes.running(processes.ZOOKEEPER)
    return stop_all(found, nothing="No zookeeper server to stop", what="ZooKeeper")
