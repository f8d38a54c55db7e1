"""`connect-mirror-maker.sh`: MirrorMaker 2's properties, run as `ottla mirror` runs its files."""

from collections.abc import Sequence
from pathlib import Path

from ottla.cli.common.options import ToolParser
from ottla.cli.pipeline.mirroring import add_mirror_options, run_mirror, say_notes

EXAMPLES = """
  %(prog)s mm2.properties
  %(prog)s mm2.properties --clusters west   only the flows that end there
"""


def main(argv: Sequence[str] | None = None, prog: str = "ottla mirror-maker") -> int:
    parser = ToolParser(prog, "Mirror topics between clusters by the properties of MirrorMaker 2.", EXAMPLES)
    parser.add_argument("file", type=Path, metavar="FILE", help="mm2.properties")
    parser.add_argument("--clusters", nargs="+", metavar="CLUSTER", help="only flows to these")
    add_mirror_options(parser)
    args = parser.parse(argv)
    import msgspec

    from ottla.config.properties import parse_properties
    from ottla.pipelines.mirror.mirror_maker import WrongProperties, from_properties

    mirror, notes = from_properties(parse_properties(args.file.read_text(encoding="utf-8")), "mm2")
    say_notes(notes)
    if args.clusters:
        flows = [flow for flow in mirror.flows if flow.target in args.clusters]
        if not flows:
            raise WrongProperties(f"no flow ends in {', '.join(args.clusters)}")
        mirror = msgspec.structs.replace(mirror, flows=flows)
    return run_mirror(mirror, args.file, args)
