"""`kafka-transactions find-hanging`: open transactions in partitions that no coordinator is going to end."""

import argparse
import itertools
import time
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ottla.cli.common.output import CommandError, print_json
from ottla.client import admin, transactions
from ottla.client.cluster import Cluster
from ottla.model.error_words import in_words
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.names import TopicPartition
from ottla.protocol.messages.describe_producers import ProducerState

PARTITIONS_PER_REQUEST_MAX = 500
MINUTE_MS = 60_000
HEADERS = (
    "Topic", "Partition", "ProducerId", "ProducerEpoch", "CoordinatorEpoch", "StartOffset", "LastTimestamp",
    "Duration(min)",
)  # fmt: skip


class OpenTransaction(NamedTuple):
    partition: TopicPartition
    producer: ProducerState


def print_table(headers: Sequence[str], rows: Iterable[Sequence[object]], *, as_json: bool) -> None:
    """Columns ended by tabs, the layout that scripts cut; with `as_json` a list of objects."""
    table = [tuple(row) for row in rows]
    if as_json:
        print_json([dict(zip(headers, row, strict=True)) for row in table])
        return
    texts = [tuple(headers), *(tuple("None" if cell is None else str(cell) for cell in row) for row in table)]
    widths = [max(len(row[column]) for row in texts) for column in range(len(headers))]
    for text in texts:
        print("".join(f"{cell.ljust(width)}\t" for cell, width in zip(text, widths, strict=True)))


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--broker-id", type=int, metavar="ID", help="look at the partitions of this broker")
    parser.add_argument(
        "--max-transaction-timeout", type=int, default=15, metavar="MINUTES",
        help="leave alone what was written to within this time (default: 15)",
    )  # fmt: skip
    parser.add_argument("--topic", metavar="TOPIC", help="look at this topic only")
    parser.add_argument("--partition", type=int, metavar="NUMBER", help="look at this partition of --topic only")


async def find(cluster: Cluster, args: argparse.Namespace) -> int:
    if args.topic is None and args.broker_id is None:
        raise CommandError("The `find-hanging` command requires either --topic or --broker-id to limit the search")
    if args.partition is not None and args.topic is None:
        raise CommandError("The --partition argument requires --topic to be provided")
    now_ms = int(time.time() * 1000)
    try:
        partitions = await _partitions(cluster, args)
        suspects = [
            found
            for found in await _open_transactions(cluster, partitions, args.broker_id)
            if now_ms - found.producer.last_timestamp > args.max_transaction_timeout * MINUTE_MS
        ]
        hanging = await _that_hang(cluster, suspects)
    except ApiError as error:
        raise CommandError(f"Failed to look for hanging transactions: {in_words(error)}") from error
    rows = [
        (
            partition.topic, partition.partition, producer.producer_id, producer.producer_epoch,
            producer.coordinator_epoch, producer.current_txn_start_offset, producer.last_timestamp,
            (now_ms - producer.last_timestamp) // MINUTE_MS,
        )
        for partition, producer in hanging
    ]  # fmt: skip
    print_table(HEADERS, rows, as_json=args.json)
    return 0


async def _partitions(cluster: Cluster, args: argparse.Namespace) -> list[TopicPartition]:
    if args.topic is not None and args.partition is not None:
        return [TopicPartition(args.topic, args.partition)]
    names = [args.topic] if args.topic is not None else [topic.name for topic in await admin.list_topics(cluster)]
    return [
        TopicPartition(topic.name, partition.partition)
        for topic in await admin.describe_topics(cluster, names)
        for partition in topic.partitions
        if args.broker_id is None or args.broker_id in partition.replicas
    ]


async def _open_transactions(
    cluster: Cluster, partitions: Sequence[TopicPartition], node: int | None
) -> list[OpenTransaction]:
    found: list[OpenTransaction] = []
    remaining = iter(partitions)
    while batch := list(itertools.islice(remaining, PARTITIONS_PER_REQUEST_MAX)):
        for partition, answer in (await transactions.describe_producers(cluster, batch, node)).items():
            if isinstance(answer, ErrorCode):
                raise CommandError(f"Failed to describe producers for partition {partition}: {in_words(answer)}")
            found += [OpenTransaction(partition, state) for state in answer if state.current_txn_start_offset >= 0]
    return found


async def _that_hang(cluster: Cluster, suspects: Sequence[OpenTransaction]) -> list[OpenTransaction]:
    """Those whose coordinator does not know that this partition takes part, so no marker will ever come."""
    producer_ids = sorted({suspect.producer.producer_id for suspect in suspects})
    if not producer_ids:
        return []
    expected: set[tuple[int, TopicPartition]] = set()
    for listing in await transactions.list_transactions(cluster, producer_ids=producer_ids):
        try:
            described = await transactions.describe_transaction(cluster, listing.transactional_id)
        except ApiError as error:
            if error.code is not ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
                raise
            continue
        expected |= {(listing.producer_id, partition) for partition in described.partitions}
    return [found for found in suspects if (found.producer.producer_id, found.partition) not in expected]
