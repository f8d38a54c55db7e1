"""`ottla backup`: topics, their settings and groups in a folder or a bucket, and back again."""

from collections.abc import Sequence

from ottla.cli.pipeline.subcommands import Family, SubCommand

SUBCOMMANDS: dict[str, SubCommand] = {
    "run": SubCommand("backup_run", "take a backup: everything, or what is new since the last one"),
    "list": SubCommand("backup_list", "show the backups of a place"),
    "verify": SubCommand("backup_verify", "read everything back and compare it with the manifests"),
    "restore": SubCommand(
        "backup_restore", "bring topics, settings and groups' offsets back, under the same or other names"
    ),
    "prune": SubCommand("backup_prune", "delete old backups, and nothing that a kept one needs"),
    "metadata": SubCommand(
        "backup_metadata", "copy what the metadata store holds to a file, and back into an empty store"
    ),
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

ABOUT = "Backup and restore. PLACE is a folder, s3://bucket/prefix, or a .yaml file that says where and what."


def main(argv: Sequence[str] | None = None, prog: str = "ottla backup") -> int:
    return Family(SUBCOMMANDS, "PLACE", ABOUT, EXAMPLE).main(argv, prog)
