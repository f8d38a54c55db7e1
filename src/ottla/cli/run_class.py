"""`kafka-run-class.sh CLASS args...`: the tool that Kafka keeps in that Java class."""

import difflib
import sys
from collections.abc import Sequence

from ottla.cli.main import run
from ottla.cli.names import BY_CLASS, COMMANDS
from ottla.cli.output import CommandError

# Options of the script itself, about the JVM and its logs. Their number of values follows.
_JVM_OPTIONS = {"-name": 1, "-loggc": 0}


def main(argv: Sequence[str] | None = None, prog: str = "kafka-run-class") -> int:
    arguments = list(sys.argv[1:] if argv is None else argv)
    while arguments and arguments[0] in _JVM_OPTIONS:
        arguments = arguments[1 + _JVM_OPTIONS[arguments[0]] :]
    if arguments and arguments[0] == "-daemon":
        raise CommandError(
            "-daemon is not supported: run the tool in the foreground, under systemd or with nohup ... &"
        )
    if not arguments or arguments[0] in ("-h", "--help"):
        print(_usage(prog))
        return 0
    java_class, rest = arguments[0], arguments[1:]
    command = BY_CLASS.get(java_class)
    if command is None:
        close = difflib.get_close_matches(java_class, BY_CLASS, n=1)
        hint = f"Did you mean {close[0]}?" if close else f"`{prog} --help` lists the classes."
        raise CommandError(f"no tool stands in for the Java class {java_class}. {hint}")
    return run(command, rest, f"{prog} {java_class}")


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
