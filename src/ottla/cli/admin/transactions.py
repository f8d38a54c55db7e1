"""`kafka-transactions`: list and describe transactions, find those that hang, and end them."""

import argparse
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence

from ottla.cli.admin import hanging_transactions
from ottla.cli.admin.hanging_transactions import print_table
from ottla.cli.common.admin_session import run_admin
from ottla.cli.common.options import CommandParser, ToolParser, add_connection_options
from ottla.cli.common.output import CommandError
from ottla.client import transactions
from ottla.client.cluster import Cluster
from ottla.model.error_words import in_words
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.names import TopicPartition
from ottla.model.sentinels import NO_OFFSET
from ottla.protocol.messages.describe_producers import ProducerState

EXAMPLES = """
  %(prog)s list
  %(prog)s list --duration-filter 60000 --transactional-id-pattern 'billing-.*'
  %(prog)s describe --transactional-id billing-1
  %(prog)s describe-producers --topic news --partition 0
  %(prog)s find-hanging --broker-id 1
  %(prog)s abort --topic news --partition 0 --start-offset 42
  %(prog)s forceTerminateTransaction --transactionalId billing-1
"""


def main(argv: Sequence[str] | None = None, prog: str = "ottla transactions") -> int:
    args = _parser(prog).parse(argv)
    work: Mapping[str, Callable[[Cluster, argparse.Namespace], Awaitable[int]]] = {
        "list": _list,
        "describe": _describe,
        "describe-producers": _describe_producers,
        "abort": _abort,
        "find-hanging": hanging_transactions.find,
        "forceTerminateTransaction": _force_terminate,
    }
    return run_admin(args, lambda cluster: work[args.command](cluster, args))


def _parser(prog: str) -> ToolParser:
    parser = ToolParser(prog, "Look into transactions, find those that hang, and end them.", EXAMPLES)
    parser.usage = "%(prog)s [options] COMMAND [options of the command]"
    add_connection_options(parser)
    commands = parser.add_subparsers(
        dest="command", metavar="COMMAND", required=True, title="commands", parser_class=CommandParser
    )
    listing = commands.add_parser("list", help="list transactional ids")
    listing.add_argument(
        "--duration-filter", type=int, default=-1, metavar="MS", help="only transactions open for longer than this"
    )
    listing.add_argument("--transactional-id-pattern", metavar="REGEX", help="only ids that match as a whole")
    describing = commands.add_parser("describe", help="describe the state of a transactional id")
    describing.add_argument("--transactional-id", required=True, metavar="ID")
    producers = commands.add_parser("describe-producers", help="describe the producers that a partition remembers")
    producers.add_argument("--broker-id", type=int, metavar="ID", help="ask this broker instead of the leader")
    _add_partition(producers)
    aborting = commands.add_parser("abort", help="end a transaction that hangs, in one partition")
    _add_partition(aborting)
    aborting.add_argument("--start-offset", type=int, metavar="OFFSET", help="where the transaction begins")
    aborting.add_argument("--producer-id", type=int, metavar="ID", help="without --start-offset: whose it is")
    aborting.add_argument("--producer-epoch", type=int, metavar="EPOCH", help="with --producer-id")
    aborting.add_argument("--coordinator-epoch", type=int, metavar="EPOCH", help="with --producer-id")
    hanging_transactions.add_options(commands.add_parser("find-hanging", help="find transactions that hang"))
    terminating = commands.add_parser(
        "forceTerminateTransaction", help="abort the transaction of an id and fence its producer off"
    )
    terminating.add_argument("--transactionalId", required=True, metavar="ID", dest="transactional_id")
    return parser


def _add_partition(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--topic", required=True, metavar="TOPIC")
    parser.add_argument("--partition", required=True, type=int, metavar="NUMBER")


async def _list(cluster: Cluster, args: argparse.Namespace) -> int:
    try:
        listed = await transactions.list_transactions(
            cluster, duration_ms=args.duration_filter, pattern=args.transactional_id_pattern
        )
    except ApiError as error:
        raise CommandError(f"Failed to list transactions: {in_words(error)}") from error
    print_table(("TransactionalId", "Coordinator", "ProducerId", "TransactionState"), listed, as_json=args.json)
    return 0


async def _describe(cluster: Cluster, args: argparse.Namespace) -> int:
    name = args.transactional_id
    try:
        found = await transactions.describe_transaction(cluster, name)
    except ApiError as error:
        reason = (
            "there is no such transactional id"
            if error.code is ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
            else in_words(error)
        )
        raise CommandError(f"Failed to describe transaction state of transactional-id `{name}`: {reason}") from error
    duration = None if found.started_ms is None else int(time.time() * 1000) - found.started_ms
    headers = (
        "CoordinatorId", "TransactionalId", "ProducerId", "ProducerEpoch", "TransactionState", "TransactionTimeoutMs",
        "CurrentTransactionStartTimeMs", "TransactionDurationMs", "TopicPartitions",
    )  # fmt: skip
    row = (
        found.coordinator, name, found.producer_id, found.producer_epoch, found.state, found.timeout_ms,
        found.started_ms, duration, ",".join(str(partition) for partition in found.partitions),
    )  # fmt: skip
    print_table(headers, [row], as_json=args.json)
    return 0


async def _producers(
    cluster: Cluster, partition: TopicPartition, what: str, node: int | None = None
) -> list[ProducerState]:
    try:
        answer = (await transactions.describe_producers(cluster, [partition], node))[partition]
    except ApiError as error:
        raise CommandError(f"{what}: {in_words(error)}") from error
    if isinstance(answer, ErrorCode):
        raise CommandError(f"{what}: {in_words(answer)}")
    return answer


async def _describe_producers(cluster: Cluster, args: argparse.Namespace) -> int:
    partition = TopicPartition(args.topic, args.partition)
    where = "leader" if args.broker_id is None else f"broker {args.broker_id}"
    what = f"Failed to describe producers for partition {partition} on {where}"
    producers = await _producers(cluster, partition, what, args.broker_id)
    headers = (
        "ProducerId", "ProducerEpoch", "LatestCoordinatorEpoch", "LastSequence", "LastTimestamp",
        "CurrentTransactionStartOffset",
    )  # fmt: skip
    rows = [
        (
            found.producer_id, found.producer_epoch, found.coordinator_epoch, found.last_sequence,
            found.last_timestamp, None if found.current_txn_start_offset < 0 else found.current_txn_start_offset,
        )
        for found in producers
    ]  # fmt: skip
    print_table(headers, rows, as_json=args.json)
    return 0


async def _abort(cluster: Cluster, args: argparse.Namespace) -> int:
    partition = TopicPartition(args.topic, args.partition)
    if args.start_offset is not None:
        producer_id, epoch, coordinator_epoch = await _open_at(cluster, partition, args.start_offset)
    elif args.producer_id is None:
        raise CommandError(
            "The transaction to abort must be identified either with --start-offset or with "
            "--producer-id, --producer-epoch and --coordinator-epoch"
        )
    else:
        for option in ("producer_epoch", "coordinator_epoch"):
            if getattr(args, option) is None:
                raise CommandError(f"Missing required argument --{option.replace('_', '-')}")
        producer_id, epoch, coordinator_epoch = args.producer_id, args.producer_epoch, args.coordinator_epoch
    try:
        # A producer whose transactions never ended has no coordinator's epoch yet; the lowest one is always right.
        await transactions.write_abort_marker(cluster, partition, producer_id, epoch, max(coordinator_epoch, 0))
    except ApiError as error:
        raise CommandError(f"Failed to abort the transaction in {partition}: {in_words(error)}") from error
    return 0


async def _open_at(cluster: Cluster, partition: TopicPartition, start_offset: int) -> tuple[int, int, int]:
    what = f"Failed to validate producer state for partition {partition}"
    for found in await _producers(cluster, partition, what):
        if found.current_txn_start_offset == start_offset != NO_OFFSET:
            return found.producer_id, found.producer_epoch, found.coordinator_epoch
    raise CommandError(f"Could not find any open transactions starting at offset {start_offset} on {partition}")


async def _force_terminate(cluster: Cluster, args: argparse.Namespace) -> int:
    try:
        await transactions.fence_producer(cluster, args.transactional_id)
    except ApiError as error:
        raise CommandError(
            f"Failed to force terminate transactionalId `{args.transactional_id}`: {in_words(error)}"
        ) from error
    return 0
