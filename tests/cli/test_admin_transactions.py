"""kafka-transactions against a real broker."""

import asyncio
import json
import time
from collections.abc import Callable, Iterator

import pytest
from confluent_kafka import Producer

from ottla.cli.main import main
from ottla.client import admin
from ottla.client.cluster import Cluster
from ottla.model.errors import ErrorCode
from ottla.protocol.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData
from ottla.protocol.records import NewRecord, encode_batch
from ottla.testing import RunningBroker, broker

Unique = Callable[[str], str]
Captured = pytest.CaptureFixture[str]
Tool = Callable[..., list[dict[str, str]]]

STRAY_ID = 4711


@pytest.fixture
def tool(ottla_broker: RunningBroker, capsys: Captured) -> Tool:
    """Runs the tool and reads the table that it prints, as a script would."""

    def run(*arguments: str) -> list[dict[str, str]]:
        assert main(["transactions", "--bootstrap-server", ottla_broker.bootstrap, *arguments]) == 0
        lines = [line.split("\t")[:-1] for line in capsys.readouterr().out.splitlines()]
        header, *rows = [[cell.strip() for cell in line] for line in lines] or [[]]
        return [dict(zip(header, row, strict=True)) for row in rows]

    return run


@pytest.fixture
def open_transaction(ottla_broker: RunningBroker, unique: Unique) -> Iterator[tuple[str, str]]:
    """A transactional id with one record in an open transaction, and its topic."""
    name, topic = unique("txn"), unique("news")
    producer = Producer({"bootstrap.servers": ottla_broker.bootstrap, "transactional.id": name})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(topic, b"open", partition=0)
    assert producer.flush(30) == 0
    yield name, topic
    del producer


async def write_stray(bootstrap: str, topic: str) -> None:
    """One record in a transaction of a producer that no coordinator gave its id to."""
    records = encode_batch(
        [NewRecord(None, b"stray", int(time.time() * 1000))],
        producer_id=STRAY_ID,
        producer_epoch=0,
        base_sequence=0,
        transactional=True,
    )
    async with Cluster(bootstrap) as cluster:
        await admin.create_topic(cluster, topic, partitions=1, replication_factor=1)
        partition = PartitionProduceData(index=0, records=records)
        request = ProduceRequest(
            transactional_id="stray",
            acks=-1,
            timeout_ms=10_000,
            topic_data=[TopicProduceData(name=topic, partition_data=[partition])],
        )
        response = await cluster.call(request, ProduceResponse, max_version=11)
        assert response.responses[0].partition_responses[0].error_code == ErrorCode.NONE


@pytest.mark.one_broker("shows the id of the coordinator")
def test_an_open_transaction_is_listed_and_described(tool: Tool, open_transaction: tuple[str, str]) -> None:
    name, topic = open_transaction
    [listed] = tool("list", "--transactional-id-pattern", name)
    assert listed == {
        "TransactionalId": name, "Coordinator": "1", "ProducerId": listed["ProducerId"], "TransactionState": "Ongoing",
    }  # fmt: skip
    [described] = tool("describe", "--transactional-id", name)
    assert described["CoordinatorId"] == "1"
    assert described["ProducerId"] == listed["ProducerId"]
    assert described["ProducerEpoch"] == "0"
    assert described["TransactionState"] == "Ongoing"
    assert described["TransactionTimeoutMs"] == "60000"
    assert int(described["TransactionDurationMs"]) >= 0
    assert described["TopicPartitions"] == f"{topic}-0"
    assert tool("list", "--duration-filter", "600000", "--transactional-id-pattern", name) == []
    assert name in {row["TransactionalId"] for row in tool("list", "--duration-filter", "0")}


def test_json_is_a_list_of_objects(
    ottla_broker: RunningBroker, open_transaction: tuple[str, str], capsys: Captured
) -> None:
    name, _ = open_transaction
    options = ["--bootstrap-server", ottla_broker.bootstrap, "list", "--transactional-id-pattern", name, "--json"]
    assert main(["transactions", *options]) == 0
    [listed] = json.loads(capsys.readouterr().out)
    assert (listed["TransactionalId"], listed["TransactionState"]) == (name, "Ongoing")


@pytest.mark.one_broker("names the broker that leads")
def test_a_transaction_is_ended_from_outside(tool: Tool, open_transaction: tuple[str, str]) -> None:
    name, topic = open_transaction
    where = ["--topic", topic, "--partition", "0"]
    [producer] = tool("describe-producers", *where)
    assert producer["CurrentTransactionStartOffset"] == "0"
    # Its coordinator knows it, so it does not hang.
    assert tool("find-hanging", "--topic", topic, "--max-transaction-timeout", "-1") == []
    assert tool("abort", *where, "--start-offset", "0") == []
    [producer] = tool("describe-producers", *where, "--broker-id", "1")
    assert producer["CurrentTransactionStartOffset"] == "None"
    assert tool("forceTerminateTransaction", "--transactionalId", name) == []
    [listed] = tool("list", "--transactional-id-pattern", name)
    assert listed["TransactionState"] == "Empty"


@pytest.mark.one_broker("writes to a leader without looking for it")
def test_what_no_coordinator_knows_hangs(capsys: Captured) -> None:
    """Without verification a partition takes a transactional record that no coordinator has heard of."""
    with broker(settings={"transaction.partition.verification.enable": "false"}) as running:

        def find(*arguments: str) -> list[dict[str, object]]:
            options = ["--json", "--bootstrap-server", running.bootstrap]
            assert main(["transactions", "find-hanging", *options, "--max-transaction-timeout", "-1", *arguments]) == 0
            found: list[dict[str, object]] = json.loads(capsys.readouterr().out)
            return found

        asyncio.run(write_stray(running.bootstrap, "news"))
        assert main(["transactions", "--bootstrap-server", running.bootstrap, "list"]) == 0
        assert "Ongoing" not in capsys.readouterr().out
        [found] = find("--broker-id", "1")
        assert (found["Topic"], found["Partition"], found["ProducerId"]) == ("news", 0, STRAY_ID)
        aborting = ["--producer-id", str(STRAY_ID), "--producer-epoch", "0", "--coordinator-epoch", "-1"]
        where = ["--topic", "news", "--partition", "0"]
        assert main(["transactions", "abort", "--bootstrap-server", running.bootstrap, *where, *aborting]) == 0
        assert find("--topic", "news", "--partition", "0") == []


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["describe", "--transactional-id", "nobody"], "there is no such transactional id"),
        (["list", "--transactional-id-pattern", "("], "invalid regular expression"),
        (["abort", "--topic", "t", "--partition", "0"], "--start-offset"),
        (["abort", "--topic", "t", "--partition", "0", "--producer-id", "1"], "--producer-epoch"),
        (["abort", "--topic", "no-such", "--partition", "0", "--start-offset", "1"], "no such topic"),
        (["find-hanging"], "--topic or --broker-id"),
        (["find-hanging", "--partition", "0"], "--topic"),
        (["describe-producers", "--topic", "no-such", "--partition", "0"], "no such topic"),
    ],
)
def test_what_is_refused(ottla_broker: RunningBroker, capsys: Captured, arguments: list[str], reason: str) -> None:
    assert main(["transactions", "--bootstrap-server", ottla_broker.bootstrap, *arguments]) == 1
    assert reason in capsys.readouterr().err


def test_a_missing_or_unknown_command_is_an_error(capsys: Captured) -> None:
    for arguments in (["--json"], ["commit"], ["describe"]):
        with pytest.raises(SystemExit) as stopped:
            main(["transactions", *arguments])
        assert stopped.value.code == 1
