"""`ottla backup`: topics, their settings and groups in a folder or a bucket, and back again."""

import importlib
import sys
from collections.abc import Sequence

from ottla.cli.common.output import CommandError
from ottla.cli.names import CommandModule
from ottla.pipelines.registry import hint

SUBCOMMANDS = {
    "run": ("backup_run", "take a backup: everything, or what is new since the last one"),
    "list": ("backup_list", "show the backups of a place"),
    "verify": ("backup_verify", "read everything back and compare it with the manifests"),
    "restore": ("backup_restore", "bring topics, settings and groups' offsets back, under the same or other names"),
    "prune": ("backup_prune", "delete old backups, and nothing that a kept one needs"),
    "metadata": ("backup_metadata", "copy what the metadata store holds to a file, and back into an empty store"),
}

EXAMPLE = """
  ottla backup run ./backups --topics 'orders.*'          the second run is an increment
  ottla backup run s3://bucket/kafka --format raw         batches as they are, to object storage
  ottla backup run backup.yaml --continuous               an increment every minute
  ottla backup list ./backups
  ottla backup verify ./backups
  ottla backup restore ./backups --prefix restored. --dry-run
  ottla backup restore ./backups --prefix restored.
  ottla backup prune ./backups --keep 7
"""


def main(argv: Sequence[str] | None = None, prog: str = "ottla backup") -> int:
    arguments = list(sys.argv[1:] if argv is None else argv)
    if not arguments or arguments[0] in ("-h", "--help"):
        print(_overview(prog))
        return 0
    name, rest = arguments[0], arguments[1:]
    if name not in SUBCOMMANDS:
        raise CommandError(f"there is no `{prog} {name}`{hint(name, list(SUBCOMMANDS))}")
    module: CommandModule = importlib.import_module(f"ottla.cli.pipeline.{SUBCOMMANDS[name][0]}")
    return module.main(rest, f"{prog} {name}")


def _overview(prog: str) -> str:
    width = max(len(name) for name in SUBCOMMANDS)
    return "\n".join(
        [
            f"usage: {prog} COMMAND PLACE [options]",
            "",
            "Backup and restore. PLACE is a folder, s3://bucket/prefix, or a .yaml file that says where and what.",
            "",
            *(f"  {name:<{width}}  {text}" for name, (_, text) in SUBCOMMANDS.items()),
            "",
            f"`{prog} COMMAND --help` shows a command's options. For example:",
            EXAMPLE.rstrip(),
        ]
    )
