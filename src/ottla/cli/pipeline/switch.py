"""`ottla pipeline switch`: a reprocessed version becomes the live one."""

from collections.abc import Sequence

from ottla.cli.common.options import ToolParser
from ottla.cli.common.output import CommandError, print_json
from ottla.cli.pipeline.options import add_file, add_json, add_state_dir, add_version

EXAMPLES = """
  %(prog)s orders.yaml --version v2
  %(prog)s orders.yaml --version first     back to the outputs without a version
"""
FIRST = "first"


def main(argv: Sequence[str] | None = None, prog: str = "ottla pipeline switch") -> int:
    parser = ToolParser(
        prog, "Make a version of the outputs the live one: `run` goes on with it.", EXAMPLES, shows_version=False
    )
    add_file(parser)
    add_version(parser, f"the version, or `{FIRST}` for the outputs as the file has them")
    add_json(parser)
    add_state_dir(parser)
    args = parser.parse(argv)
    from ottla.pipelines.lint import check_file
    from ottla.pipelines.runner.state_folder import StateFolder
    from ottla.pipelines.versions import places, with_version

    checked = check_file(args.file)
    folder = StateFolder(args.state_dir, checked.name)
    version = None if args.output_version == FIRST else args.output_version
    if version is not None and version not in folder.versions():
        raise CommandError(
            f"there is no version {version} of {checked.name} in {args.state_dir}; make it with "
            f"`ottla pipeline reprocess {args.file} --version {version}`"
        )
    if version is not None and StateFolder(args.state_dir, checked.name, version).locked_by_another:
        raise CommandError(f"version {version} is still being made: wait until `ottla pipeline reprocess` has ended")
    old = folder.active_version
    if old == version:
        raise CommandError(f"version {args.output_version} is the live one already")
    before, after = places(with_version(checked, old)), places(with_version(checked, version))
    folder.write("active.json", {"version": version})
    running = folder.locked_by_another
    if args.json:
        print_json({"pipeline": checked.name, "version": version, "was": old, "running": running, "places": after})
        return 0
    goes_on = "the running driver goes on with it within a second or so" if running else "`run` goes on with it"
    print(f"version {args.output_version} of {checked.name} is the live one; {goes_on}.")
    print("Readers move by themselves. Nothing more comes to the old places, which stay as they are:")
    for sink in after:
        print(f"  {sink}: {before[sink]} -> {after[sink]}")
    print("A consumer group starts on the new topic without offsets: choose where with `ottla consumer-groups")
    print("--reset-offsets`. Records in the new topic have other offsets than in the old one, and the same keys.")
    return 0
