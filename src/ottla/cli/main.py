"""The `ottla` command, and the entry point behind every Kafka-named executable."""

import difflib
import importlib
import os
import sys
from collections.abc import Callable, Sequence
from typing import cast

from ottla import __version__
from ottla.cli.common.output import complain
from ottla.cli.names import BY_NAME, BY_SCRIPT, COMMANDS, NOT_YET_BY_NAME, Command, CommandModule
from ottla.model.error_words import in_words
from ottla.model.errors import ApiError, OttlaError

EXIT_FAILED = 1
EXIT_INTERRUPTED = 130
EXIT_BROKEN_PIPE = 141


def main(argv: Sequence[str] | None = None) -> int:
    """`ottla COMMAND ...`"""
    if argv is None and _can_be_handed_over(sys.argv[1:]):
        from ottla.spark.resident.handing_over import hand_over

        code = hand_over()
        if code is not None:
            return code
    return run_here(sys.argv[1:] if argv is None else argv)


def run_here(argv: Sequence[str]) -> int:
    """In this process, whoever could do it quicker."""
    return _guarded(lambda: _ottla(list(argv)))


def _can_be_handed_over(argv: Sequence[str]) -> bool:
    """What a resident driver is for. The others ask it for nothing, or live too long for it."""
    asks_for_help = any(word in ("-h", "--help") for word in argv)
    return not asks_for_help and (
        (argv[:1] == ["sql"] and "--follow" not in argv) or list(argv[:2]) == ["pipeline", "test"]
    )


def run_by_name() -> int:
    """Entry point of `kafka-topics.sh` and its siblings: the executable's own name says which command to run."""
    called = os.path.basename(sys.argv[0])
    command = BY_SCRIPT.get(called.removesuffix(".sh"))
    if command is None:
        complain(_unknown("executable", called, BY_SCRIPT))
        return EXIT_FAILED
    return _guarded(lambda: run(command, sys.argv[1:], called))


def run(command: Command, argv: Sequence[str], prog: str) -> int:
    module = cast("CommandModule", importlib.import_module(f"ottla.cli.{command.module}"))
    return module.main(argv, prog)


def _ottla(arguments: list[str]) -> int:
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        if len(arguments) > 1 and arguments[0] == "help" and arguments[1] in BY_NAME:
            return run(BY_NAME[arguments[1]], ["--help"], f"ottla {arguments[1]}")
        print(_overview())
        return 0
    if arguments[0] in ("-V", "--version"):
        print(f"ottla {__version__}")
        return 0
    name, rest = arguments[0], arguments[1:]
    command = BY_NAME.get(name)
    if command is None:
        complain(_unknown("command", name, BY_NAME))
        return EXIT_FAILED
    return run(command, rest, f"ottla {name}")


def _guarded(work: Callable[[], int]) -> int:
    """The one place where errors become words on stderr and an exit code."""
    try:
        code = work()
        sys.stdout.flush()  # so that a reader that has gone is noticed here
    except OttlaError as error:
        complain(in_words(error) if isinstance(error, ApiError) else str(error))
        return EXIT_FAILED
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        # The reader (head, less) has gone. Python would complain again when it flushes stdout at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_BROKEN_PIPE
    except OSError as error:
        complain(str(error))
        return EXIT_FAILED
    return code


def _overview() -> str:
    width = max(len(command.name) for command in COMMANDS)
    lines = [f"  {command.name:<{width}}  {command.help}" for command in COMMANDS]
    return "\n".join(
        [
            "usage: ottla COMMAND [options]",
            "",
            "A log that speaks Kafka's protocol, and Kafka's tools for it.",
            "",
            *lines,
            "",
            "Start here:",
            "  ottla up                                          a broker on 127.0.0.1:9092",
            "  ottla topics --create --topic news --partitions 3",
            "  echo hello | ottla console-producer --topic news",
            "  ottla console-consumer --topic news --from-beginning",
            "",
            "`ottla COMMAND --help` shows a command's options with examples. The same tools are installed under",
            "Kafka's names (kafka-topics, kafka-topics.sh, ...). They talk to --bootstrap-server, or else to",
            "$OTTLA_BOOTSTRAP, or else to 127.0.0.1:9092.",
        ]
    )


def _unknown(kind: str, name: str, known: dict[str, Command]) -> str:
    missing = NOT_YET_BY_NAME.get(name.removesuffix(".sh"))
    if missing is not None:
        return f"there is no {kind} `{name}`: {missing.instead}."
    close = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean `{close[0]}`?" if close else "`ottla --help` lists them."
    return f"there is no {kind} `{name}`: {hint}"
