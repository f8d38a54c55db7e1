"""`dump-log`: what segment, index and snapshot files hold, read from disk without a broker."""

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from ottla.cli.common.options import ToolParser
from ottla.cli.common.output import CommandError, complain
from ottla.cli.dump.decoders import DECODERS_NOT_SERVED, Decode, choose_decoder
from ottla.cli.dump.indexes import IndexProblems, dump_index, dump_time_index
from ottla.cli.dump.segment import NO_LIMIT, SegmentOptions, dump_segment
from ottla.cli.dump.state import dump_producer_snapshot, dump_transaction_index

EXAMPLES = """\
  ottla dump-log --files .ottla/data/news-0/00000000000000000000.log
  ottla dump-log --print-data-log --files .ottla/data/news-0/00000000000000000000.log
  ottla dump-log --index-sanity-check --files .ottla/data/news-0/00000000000000000000.index
  ottla dump-log --offsets-decoder --files .ottla/data/__consumer_offsets-7/00000000000000000000.log
  kafka-run-class.sh kafka.tools.DumpLogSegments \\
      --print-data-log --files a/00000000000000000000.log,b/00000000000000000000.log

Reads .log, .index, .timeindex, .snapshot (producers) and .txnindex files. Corrupt or torn files are reported, and the
exit code is 1 where a file cannot be read to its end or an index does not fit its log.
"""
DEFAULT_MAX_MESSAGE_SIZE = 5 * 1024 * 1024


def main(argv: Sequence[str] | None = None, prog: str = "ottla dump-log") -> int:
    args = _parser(prog).parse(argv)
    decode = _decoder(args)
    options = SegmentOptions(
        print_contents=decode is not None,
        deep=args.deep_iteration or decode is not None,
        skip_record_metadata=args.skip_record_metadata,
        max_bytes=args.max_bytes,
        decode=decode,
    )
    problems = IndexProblems()
    failed = False
    for path in args.files.split(","):
        print(f"Dumping {path}")
        try:
            failed |= not _dump(path, options, problems, args)
        except CommandError as error:
            failed = True
            sys.stdout.flush()
            complain(f"{path}: {error}")
        except OSError as error:
            failed = True
            sys.stdout.flush()
            complain(f"cannot read {path}: {error.strerror}")
    sys.stdout.flush()
    for line in problems.lines():
        print(line, file=sys.stderr)
    return 1 if failed or problems else 0


def _parser(prog: str) -> ToolParser:
    parser = ToolParser(prog, "Prints and checks segment, index and snapshot files.", EXAMPLES)
    parser.add_argument("--files", required=True, metavar="FILE,FILE,...", help="the files to read")
    parser.add_argument(
        "--print-data-log", action="store_true", help="print keys and values of the records of .log files"
    )
    parser.add_argument("--deep-iteration", action="store_true", help="a line for each record, not only for each batch")
    parser.add_argument("--skip-record-metadata", action="store_true", help="print records without offset, sizes, ...")
    parser.add_argument("--index-sanity-check", action="store_true",
                        help="only check an index as a broker does when it starts")  # fmt: skip
    parser.add_argument(
        "--verify-index-only", action="store_true", help="compare an index with its log, print no entries"
    )
    parser.add_argument("--max-message-size", type=int, default=DEFAULT_MAX_MESSAGE_SIZE, metavar="BYTES",
                        help="largest batch that an index may point to (default: 5242880)")  # fmt: skip
    parser.add_argument("--max-bytes", type=int, default=NO_LIMIT, metavar="BYTES", help="read no more of a .log file")
    parser.add_argument("--key-decoder-class", nargs="?", const="", metavar="CLASS",
                        help="how keys are printed: String-, Integer-, Long- or DefaultDecoder")  # fmt: skip
    parser.add_argument("--value-decoder-class", nargs="?", const="", metavar="CLASS", help="how values are printed")
    parser.add_argument("--offsets-decoder", action="store_true", help="records are those of __consumer_offsets")
    parser.add_argument("--transaction-log-decoder", action="store_true",
                        help="records are those of __transaction_state")  # fmt: skip
    for option, reason in DECODERS_NOT_SERVED.items():
        parser.add_argument(f"--{option}", action="store_true", help=f"refused: {reason}")
    return parser


def _decoder(args: argparse.Namespace) -> Decode | None:
    for option, reason in DECODERS_NOT_SERVED.items():
        if getattr(args, option.replace("-", "_")):
            raise CommandError(f"--{option} has nothing to decode: {reason}")
    if args.max_bytes < 0 or args.max_message_size < 1:
        raise CommandError("--max-bytes and --max-message-size are numbers of bytes")
    classes = (args.key_decoder_class, args.value_decoder_class)
    special = args.offsets_decoder or args.transaction_log_decoder
    if not (args.print_data_log or special or any(name is not None for name in classes)):
        return None
    return choose_decoder(
        offsets=args.offsets_decoder,
        transactions=args.transaction_log_decoder,
        key_class=classes[0],
        value_class=classes[1],
    )


def _dump(path: str, options: SegmentOptions, problems: IndexProblems, args: argparse.Namespace) -> bool:
    """Dump one file; False where it could not be read to its end."""
    suffix = Path(path).suffix
    only_check, quiet = args.index_sanity_check, args.verify_index_only
    kinds: dict[str, Callable[[], bool]] = {
        ".log": lambda: dump_segment(path, options),
        ".index": lambda: dump_index(
            path, problems, sanity_only=only_check, verify_only=quiet, max_message_size=args.max_message_size
        ),
        ".timeindex": lambda: dump_time_index(path, problems, sanity_only=only_check, verify_only=quiet),
        ".snapshot": lambda: dump_producer_snapshot(path),
        ".txnindex": lambda: dump_transaction_index(path),
    }
    if suffix == ".checkpoint":
        raise CommandError("snapshots of Kafka's own metadata log are not read; Ottla keeps its metadata in SQLite")
    if suffix not in kinds:
        sys.stdout.flush()
        print(f"Ignoring unknown file {path}", file=sys.stderr)
        return True
    return kinds[suffix]()
