"""Pipeline files for tests that need no Spark."""

import copy
from pathlib import Path
from typing import Any

from ottla.pipelines.lint import check
from ottla.pipelines.loading import Document
from ottla.pipelines.parts import CheckedPipeline

ISSUE = """\
name: orders-enriched
sources: {orders: {topic: orders, format: json, schema: "id STRING, item STRING, amount DOUBLE, at TIMESTAMP", start: earliest}}
steps:
  - sql: SELECT *, amount * 1.2 AS gross FROM orders WHERE amount > 0
  - python: enrich:add_country
  - expect: {rule: "gross < 1e6", otherwise: dead_letter}
sinks: [{topic: orders.enriched, key: id, format: json, delivery: exactly_once}, {files: ./lake/orders, format: parquet, partition_by: [item]}]
errors: {retries: 3, dead_letter: orders.dead, restart: always}
limits: {trigger: 1 second, max_records: 50000}
tests: [{given: {orders: fixtures/orders.jsonl}, expect: fixtures/enriched.jsonl}]
"""  # noqa: E501 - as the issue has it

SMALL: dict[str, Any] = {
    "name": "small",
    "sources": {"orders": {"topic": "orders", "format": "json", "schema": "id STRING, amount DOUBLE"}},
    "steps": [{"sql": "SELECT * FROM orders WHERE amount > 0", "as": "good"}, {"expect": {"rule": "amount < 10"}}],
    "sinks": [{"topic": "out", "key": "id"}],
    "errors": {"dead_letter": "dead", "retries": 2},
    "limits": {"trigger": "1 second", "max_records": 10},
    "tests": [{"given": {"orders": "orders.jsonl"}, "expect": "out.jsonl"}],
}

EVERYTHING: dict[str, Any] = {
    "name": "everything",
    "description": "one of each",
    "bootstrap": "127.0.0.1:9092",
    "client": {"client.id": "x", "sasl.password": "${env:X}"},
    "tables": {"customers": {"topic": "customers", "format": "json", "schema": "id STRING", "keep": ["key"]}},
    "phases": [
        {
            "name": "first",
            "sources": {
                "orders": {
                    "topic": "/orders-.*/", "format": "json", "schema": "id STRING, at TIMESTAMP, amount DOUBLE",
                    "start": "2026-01-01T00:00:00Z", "keep": {"n": "offset"}, "min_partitions": 4,
                },
                "lines": {"files": "./in", "format": "text"},
                "rows": {"generate": {"id": {"kind": "sequence"}}, "rate": 10.0},
            },
            "steps": [
                {"filter": "amount > 0", "from": "orders", "as": "good"},
                {"window": {"time": "at", "size": "1 minute", "watermark": "1 hour", "aggregates": {"n": "count(*)"}}},
                {"sql": "SELECT * FROM input, lines, rows, customers", "name": "all together"},
                {"expect": {"rule": "n > 0", "otherwise": "drop"}},
                {"python": "module:function"},
                {"deduplicate": {"keys": ["id"], "time": "at", "within": "1 hour"}},
                {"join": {"with": "customers", "on": {"id": "id"}}},
            ],
            "sinks": [
                {"topic": "out", "key": "id", "headers": {"a": "n"}, "partition": "0", "timestamp": "at"},
                {"files": "lake", "format": "parquet", "partition_by": ["id"], "name": "lake"},
                {"postgres": "postgresql://u:${env:X}@h/db", "table": "t", "mode": "insert"},
                {"sqlite": "x.db", "table": "t", "from": "good"},
                {"console": True},
            ],
        },
    ],
    "errors": {"dead_letter": "dead", "backoff": "1 second"},
}  # fmt: skip


def small(**changes: Any) -> dict[str, Any]:
    return {**copy.deepcopy(SMALL), **changes}


def checked(values: Any) -> CheckedPipeline:
    return check(Document(path=Path("pipeline.yaml"), values=values))
