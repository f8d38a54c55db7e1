"""`ottla mirror pause`, `resume`, `promote` and `failback`: what is done to the flows of a mirror."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ottla.cli.common.options import ToolParser
from ottla.cli.common.output import CommandError, print_json
from ottla.cli.pipeline.options import add_json, add_state_dir

if TYPE_CHECKING:
    from ottla.pipelines.mirror.promoting import Promoted
    from ottla.pipelines.mirror.spec import Flow, Mirror

PROMOTE_EXAMPLES = """
  %(prog)s mirror.yaml                      what the mirror was for: the active cluster is lost, or is to rest
  %(prog)s mirror.yaml --flow east-west     one flow of several
  %(prog)s mirror.yaml --json               for scripts: offsets of every partition
"""
FAILBACK_EXAMPLES = """
  %(prog)s mirror.yaml                      writes mirror-back.yaml; run that until it has caught up, then promote it
  %(prog)s mirror.yaml --discard            also if the old active cluster has records that never got here
"""


def pause(argv: Sequence[str], prog: str) -> int:
    text = "Let flows rest after the batch that runs: nothing is copied, records or anything else, until `resume`."
    return _rest(argv, ToolParser(prog, text, ""), paused=True)


def resume(argv: Sequence[str], prog: str) -> int:
    return _rest(argv, ToolParser(prog, "Let flows that rest go on.", ""), paused=False)


def _rest(argv: Sequence[str], parser: ToolParser, *, paused: bool) -> int:
    args, mirror, flows = _asked(parser, argv)
    from ottla.pipelines.mirror.flows import flow_name, set_paused

    for flow in flows:
        set_paused(mirror, flow, args.state_dir, paused=paused)
    if args.json:
        print_json([{"pipeline": flow_name(mirror, flow), "paused": paused} for flow in flows])
    else:
        for flow in flows:
            print(f"{flow_name(mirror, flow)}: {'paused' if paused else 'goes on'}")
    return 0


def promote(argv: Sequence[str], prog: str) -> int:
    text = (
        "Make the topics of a standby (`offsets: keep`) ordinary ones: the mirror is shut out, open transactions are "
        "aborted, producers may write. Says what was replicated and what was not."
    )
    args, mirror, flows = _asked(ToolParser(prog, text, PROMOTE_EXAMPLES), argv, standby=True)
    import msgspec

    from ottla.pipelines.mirror.promoting import promote as promote_flow

    done = [promote_flow(mirror, flow, args.file, args.state_dir) for flow in flows]
    if args.json:
        print_json(msgspec.to_builtins(done))
    else:
        for found in done:
            print("\n".join(_in_words(found)))
    return 0


def _in_words(found: "Promoted") -> list[str]:
    lines = [f"{found.flow}: promoted {', '.join(found.topics)}"]
    if found.missing_records is None:
        lines.append(
            "  what the source had beyond that is not known: it does not answer, and this --state-dir is not one "
            "of a mirror that has seen it. The topics are promoted all the same; compare when the source is there again"
        )
    elif found.source_answers:
        lines.append(f"  not replicated: {found.missing_records:,} records")
    else:
        lines.append(
            f"  not replicated: {found.missing_records:,} records that the source had when it was last seen, "
            f"{found.seen_seconds_ago:.1f} s ago; and what came to it since"
        )
    if found.missing_topics:
        lines.append(f"  topics that had not come at all: {', '.join(found.missing_topics)}")
    if found.whole_seconds_ago is not None:
        lines.append(f"  everything that the source had {found.whole_seconds_ago:.1f} s ago is there")
    if found.aborted_transactions:
        lines.append(f"  {found.aborted_transactions} transactions were open, and are aborted")
    return lines


def fail_back(argv: Sequence[str], prog: str) -> int:
    text = (
        "After a promotion: make the cluster that was active the standby of the one that took over. Its topics are "
        "deleted, and copied back by the file that this writes."
    )
    parser = ToolParser(prog, text, FAILBACK_EXAMPLES)
    parser.add_argument("--discard", action="store_true", help="delete records that never reached the other cluster")
    parser.add_argument(
        "--output", type=Path, metavar="FILE", help="the new file (default: NAME-back.yaml beside FILE)"
    )
    args, mirror, flows = _asked(parser, argv, standby=True)
    import msgspec
    import yaml

    from ottla.pipelines.loading import load
    from ottla.pipelines.mirror.failing_back import fail_back as fail_back_flow
    from ottla.pipelines.mirror.failing_back import reversed_file

    done = [fail_back_flow(mirror, flow, args.file, args.state_dir, discard=args.discard) for flow in flows]
    output = args.output or args.file.with_name(f"{args.file.stem}-back.yaml")
    values = reversed_file(load(args.file).values, [flow.name for flow in flows])
    output.write_text(yaml.safe_dump(values, sort_keys=False), encoding="utf-8")
    if args.json:
        print_json({"file": str(output), "flows": msgspec.to_builtins(done)})
        return 0
    for found in done:
        lost = sum(tail.records for tail in found.discarded)
        print(
            f"{found.flow}: {', '.join(found.topics)} will be copied back" + (f"; {lost:,} discarded" if lost else "")
        )
    print(f"Now run `ottla mirror {output}`; when it has caught up, stop the writers and it, and promote {output}.")
    return 0


def _asked(
    parser: ToolParser, argv: Sequence[str], *, standby: bool = False
) -> "tuple[argparse.Namespace, Mirror, list[Flow]]":
    parser.add_argument("file", type=Path, metavar="FILE", help="the mirror: clusters and flows, in YAML")
    parser.add_argument("--flow", action="append", metavar="FROM-TO", help="only this flow; may be repeated")
    add_json(parser)
    add_state_dir(parser)
    args = parser.parse(argv)
    from ottla.pipelines.mirror.spec import load_mirror

    mirror = load_mirror(args.file)
    names = [flow.name for flow in mirror.flows]
    for name in args.flow or ():
        if name not in names:
            raise CommandError(f"there is no flow `{name}` in {args.file}: there are {', '.join(names)}")
    flows = [flow for flow in mirror.flows if not args.flow or flow.name in args.flow]
    if standby:
        flows = [flow for flow in flows if flow.is_standby or args.flow]
        if not flows:
            raise CommandError(f"no flow of {args.file} has `offsets: keep`: there is no standby")
    return args, mirror, flows
