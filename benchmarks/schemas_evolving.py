"""A topic with ten versions of a schema through pipelines to Parquet and back, beside one with a fixed schema.

Both have as many records, made of the same columns; all of them have to come out, with what was put in. Times are
the clock's, and those of processors: of Spark and its workers alone, so that other work on the machine does not count.
"""

import contextlib
import json
import statistics
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import psutil
import pyarrow.compute as pc
import pyarrow.dataset
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from ottla.pipelines.runner.deploy import deploy
from ottla.pipelines.runner.supervisor import Supervisor
from ottla.protocol.varint import signed
from ottla.registry.client import RegistryClient
from ottla.registry.framing import id_prefix
from ottla.registry.schemas.avro import parse_avro
from ottla.registry.schemas.avro_json import from_document
from ottla.spark.session import build_session
from ottla.testing.registry import registry
from ottla.testing.running import broker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

VERSIONS = 10
PARTITIONS = 4
PATIENCE_S = 300.0
EVOLVING, FIXED = "evolving", "fixed"
IN = """
name: NAME-in
sources: {orders: {topic: NAME, format: avro, SCHEMA, start: earliest}}
sinks: [{files: ./lake, format: parquet}]
limits: {max_records: 200000}
"""
OUT = """
name: NAME-out
sources: {orders: {files: ./lake, format: parquet, schema: "COLUMNS"}}
sinks: [{topic: NAME-back, format: avro, SINK}]
"""


def schema_of(version: int) -> dict[str, Any]:
    """Every version adds a field: texts and numbers in turn."""
    fields: list[dict[str, Any]] = [{"name": "id", "type": "int"}]
    for number in range(version):
        kind, default = ("string", f"text {number}") if number % 2 else ("double", float(number))
        fields.append({"name": f"f{number}", "type": kind, "default": default})
    return {"type": "record", "name": "Order", "fields": fields}


COLUMNS = "id INT, " + ", ".join(f"f{n} {'STRING' if n % 2 else 'DOUBLE'}" for n in range(VERSIONS - 1))


def evolving(records: int, rounds: int) -> None:
    conf = {"spark.scheduler.mode": "FAIR", "spark.sql.shuffle.partitions": "2"}
    spark = build_session("benchmark", "local[2]", conf)
    spark.sparkContext.setLogLevel("ERROR")
    with broker() as running, registry(running.bootstrap) as beside:
        _one(spark, running.bootstrap, beside.url, EVOLVING, 2_000, "warm")  # what starts with the first is not counted
        taken: dict[str, list[Taken]] = {EVOLVING: [], FIXED: []}
        for number in range(rounds):
            for kind in (EVOLVING, FIXED) if number % 2 == 0 else (FIXED, EVOLVING):
                taken[kind].append(_one(spark, running.bootstrap, beside.url, kind, records, str(number)))
    spark.stop()
    for what, unit in (("clock", "a second"), ("processor", "a second of processor time")):
        mixed, fixed = ([getattr(each, what) for each in taken[kind]] for kind in (EVOLVING, FIXED))
        ratios = [one / other for other, one in zip(mixed, fixed, strict=True)]
        print(
            f"{records:,} records to Parquet and back: {records / statistics.median(mixed):,.0f} {unit} with "
            f"{VERSIONS} versions, {records / statistics.median(fixed):,.0f} with a fixed schema: "
            f"{statistics.median(ratios):.2f}x ({min(ratios):.2f} to {max(ratios):.2f})"
        )


class Taken(NamedTuple):
    """Seconds of both pipelines together."""

    clock: float
    processor: float


def processor_seconds() -> float:
    """Of Spark's JVM and its workers, those that ended among them."""
    total = 0.0
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            if not {"broker", "registry"} & set(process.cmdline()):
                total += sum(process.cpu_times()[:4])
    return total


def _one(spark: "SparkSession", bootstrap: str, url: str, kind: str, records: int, mark: str) -> Taken:
    name = f"{kind}-{mark}"
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for done in admin.create_topics([NewTopic(each, PARTITIONS) for each in (name, f"{name}-back")]).values():
        done.result(PATIENCE_S)
    with RegistryClient(url) as client:
        numbers = range(VERSIONS) if kind == EVOLVING else [VERSIONS - 1]
        made = [(client.register(f"{name}-value", json.dumps(schema_of(n))).schema_id, schema_of(n)) for n in numbers]
    _send(bootstrap, name, made, records)
    with tempfile.TemporaryDirectory(prefix="ottla-bench-") as work:
        by_registry = f'schema: registry, format_options: {{registry: "{url}", record: Order}}'
        fixed = f"schema: ./order.avsc, format_options: {{framing: confluent, schema_id: {made[-1][0]}}}"
        Path(work, "order.avsc").write_text(json.dumps(schema_of(VERSIONS - 1)))
        how = by_registry if kind == EVOLVING else fixed
        texts = [text.replace("NAME", name).replace("COLUMNS", COLUMNS) for text in (IN, OUT)]
        seconds, before = 0.0, processor_seconds()
        for number, text in enumerate(texts):
            path = Path(work, f"{number}.yaml")
            path.write_text(text.replace("SCHEMA", how).replace("SINK", how))
            began = time.perf_counter()
            ran = Supervisor(
                spark,
                [deploy(path, bootstrap=bootstrap, state_dir=Path(work, "state"))],
                once=True,
                tell=lambda _: None,
            ).run()
            seconds += time.perf_counter() - began
            assert ran, name
        used = processor_seconds() - before
        _check(Path(work, "lake"), bootstrap, f"{name}-back", records)
    return Taken(seconds, used)


def _send(bootstrap: str, topic: str, made: list[tuple[int, dict[str, Any]]], records: int) -> None:
    """Versions mixed, record after record. What follows the id is the same in every record of a version."""
    frames = []
    for schema_id, schema in made:
        document = {field["name"]: field.get("default", 0) for field in schema["fields"]}
        body = from_document(parse_avro(json.dumps(schema)).root, document)
        frames.append((id_prefix(schema_id), body[1:]))
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 20, "queue.buffering.max.messages": 2_000_000})
    for number in range(records):
        head, tail = frames[number % len(frames)]
        producer.produce(topic, head + signed(number) + tail, partition=number % PARTITIONS)
        if number % 10_000 == 0:
            producer.poll(0)
    assert producer.flush(PATIENCE_S) == 0


def _check(lake: Path, bootstrap: str, back: str, records: int) -> None:
    table = pyarrow.dataset.dataset(str(lake), format="parquet").to_table()
    assert table.num_rows == records
    assert pc.sum(table["id"]).as_py() == records * (records - 1) // 2
    for number in range(VERSIONS - 1):
        assert set(table[f"f{number}"].unique().to_pylist()) == {f"text {number}" if number % 2 else float(number)}
    assert _count(bootstrap, back) == records


def _count(bootstrap: str, topic: str) -> int:
    """Records that a reader of committed records gets: marks of transactions are no records."""
    from confluent_kafka import Consumer, KafkaError  # noqa: PLC0415 - for this alone

    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "count", "enable.partition.eof": True})
    consumer.assign([TopicPartition(topic, number, 0) for number in range(PARTITIONS)])
    count, ended = 0, 0
    while ended < PARTITIONS:
        for message in consumer.consume(10_000, 1.0):
            error = message.error()
            if error is None:
                count += 1
            else:
                assert error.code() == KafkaError._PARTITION_EOF, error
                ended += 1
    consumer.close()
    return count
