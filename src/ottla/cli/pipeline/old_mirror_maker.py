"""`kafka-mirror-maker.sh`: the flags of MirrorMaker 1 as one flow that keeps names."""

from collections.abc import Sequence
from pathlib import Path

from ottla.cli.common.options import ToolParser
from ottla.cli.pipeline.mirroring import add_mirror_options, run_mirror, say_notes

EXAMPLES = """
  %(prog)s --consumer.config source.properties --producer.config target.properties --include 'orders.*'
"""
_WITHOUT_EFFECT = {
    "num_streams": "Spark has as many tasks as --master gives it cores",
    "offset_commit_interval_ms": "offsets are committed with every batch",
    "abort_on_send_failure": "what failed is written again, and nothing is passed over",
}


def main(argv: Sequence[str] | None = None, prog: str = "ottla old-mirror-maker") -> int:
    parser = ToolParser(prog, "Copy topics to another cluster under their names, as MirrorMaker 1 did.", EXAMPLES)
    parser.add_argument("--consumer.config", dest="consumer", type=Path, required=True, metavar="FILE")
    parser.add_argument("--producer.config", dest="producer", type=Path, required=True, metavar="FILE")
    parser.add_argument("--include", "--whitelist", dest="include", required=True, metavar="PATTERN")
    parser.add_argument("--num.streams", dest="num_streams", metavar="N", help="without effect")
    parser.add_argument("--offset.commit.interval.ms", dest="offset_commit_interval_ms", metavar="MS",
                        help="without effect")  # fmt: skip
    parser.add_argument("--abort.on.send.failure", dest="abort_on_send_failure", metavar="true|false",
                        help="without effect")  # fmt: skip
    add_mirror_options(parser)
    args = parser.parse(argv)
    from ottla.config.properties import parse_properties
    from ottla.pipelines.mirror.mirror_maker import from_flags

    consumer, producer = (parse_properties(path.read_text(encoding="utf-8")) for path in (args.consumer, args.producer))
    mirror, notes = from_flags(consumer, producer, args.include)
    notes += [
        f"--{flag.replace('_', '.')} has no effect: {why}"
        for flag, why in _WITHOUT_EFFECT.items()
        if getattr(args, flag)
    ]
    say_notes(notes)
    return run_mirror(mirror, args.consumer, args)
