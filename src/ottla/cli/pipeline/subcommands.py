"""Commands of a command: `ottla pipeline COMMAND`, `ottla backup COMMAND`. Each is a module of this room."""

import importlib
import sys
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ottla.cli.common.output import CommandError
from ottla.cli.names import CommandModule
from ottla.pipelines.registry import hint


class SubCommand(NamedTuple):
    module: str
    help: str


class Family(NamedTuple):
    commands: Mapping[str, SubCommand]
    usage: str
    """What comes after the command's name."""
    about: str
    example: str

    def main(self, argv: Sequence[str] | None, prog: str) -> int:
        arguments = list(sys.argv[1:] if argv is None else argv)
        if not arguments or arguments[0] in ("-h", "--help"):
            print(self.overview(prog))
            return 0
        name, rest = arguments[0], arguments[1:]
        if name not in self.commands:
            raise CommandError(f"there is no `{prog} {name}`{hint(name, list(self.commands))}")
        module: CommandModule = importlib.import_module(f"ottla.cli.pipeline.{self.commands[name].module}")
        return module.main(rest, f"{prog} {name}")

    def overview(self, prog: str) -> str:
        width = max(len(name) for name in self.commands)
        return "\n".join(
            [
                f"usage: {prog} COMMAND {self.usage} [options]",
                "",
                self.about,
                "",
                *(f"  {name:<{width}}  {command.help}" for name, command in self.commands.items()),
                "",
                f"`{prog} COMMAND --help` shows a command's options. For example:",
                self.example.rstrip(),
            ]
        )
