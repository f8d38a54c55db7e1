"""`kafka-run-class.sh CLASS args...`: the tool that Kafka keeps in that Java class."""

import difflib
import sys
from collections.abc import Sequence

from ottla.cli.common.output import CommandError
from ottla.cli.main import run
from ottla.cli.names import BY_CLASS, COMMANDS, NOT_YET_BY_CLASS

# Options of the script itself, about the JVM and its logs. Their number of values follows.
_JVM_OPTIONS = {"-name": 1, "-loggc": 0}
SERVERS = frozenset({"broker", "zookeeper"})
LIKENESS_MIN = 0.9


def main(argv: Sequence[str] | None = None, prog: str = "kafka-run-class") -> int:
    arguments = list(sys.argv[1:] if argv is None else argv)
    while arguments and arguments[0] in _JVM_OPTIONS:
        arguments = arguments[1 + _JVM_OPTIONS[arguments[0]] :]
    daemon = [word for word in arguments[:1] if word == "-daemon"]
    arguments = arguments[len(daemon) :]
    if not arguments or arguments[0] in ("-h", "--help"):
        print(_usage(prog))
        return 0
    java_class, rest = arguments[0], arguments[1:]
    command = BY_CLASS.get(java_class)
    if command is None:
        raise CommandError(_no_tool(java_class, prog))
    if daemon and command.name not in SERVERS:
        raise CommandError("-daemon is for brokers and ZooKeeper: run other tools with nohup ... &")
    return run(command, [*daemon, *rest], f"{prog} {java_class}")


def _no_tool(java_class: str, prog: str) -> str:
    """Only a slip of the pen is guessed at: a class that is Kafka's has another tool's name near it by chance."""
    missing = NOT_YET_BY_CLASS.get(java_class)
    if missing is not None:
        return f"no tool stands in for the Java class {java_class}: {missing.instead}."
    bare = java_class.rpartition(".")[2]
    alike = [name for name in BY_CLASS if _likeness(bare, name.rpartition(".")[2]) >= LIKENESS_MIN]
    close = max(alike, key=lambda name: _likeness(java_class, name), default=None)
    hint = f"Did you mean {close}?" if close else f"`{prog} --help` lists the classes."
    return f"no tool stands in for the Java class {java_class}. {hint}"


def _likeness(one: str, other: str) -> float:
    return difflib.SequenceMatcher(None, one, other).ratio()


def _usage(prog: str) -> str:
    rows = [(java_class, command.name) for command in COMMANDS for java_class in command.classes]
    width = max(len(java_class) for java_class, _ in rows)
    lines = [f"  {java_class:<{width}}  ottla {name}" for java_class, name in rows]
    return "\n".join(
        [
            f"usage: {prog} CLASS [options of the tool]",
            "",
            "Runs Ottla's tool for a Java class of Kafka. There is no JVM behind it, and no class path.",
            "",
            *lines,
            "",
            "examples:",
            f"  {prog} kafka.tools.DumpLogSegments --print-data-log --files 00000000000000000000.log",
            f"  {prog} kafka.tools.GetOffsetShell --broker-list localhost:9092 --topic news",
        ]
    )
