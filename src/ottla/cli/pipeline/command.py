"""`ottla pipeline`: data pipelines on Spark, from files."""

from collections.abc import Sequence

from ottla.cli.pipeline.subcommands import Family, SubCommand

SUBCOMMANDS: dict[str, SubCommand] = {
    "lint": SubCommand("lint", "find every mistake in files, without starting anything"),
    "plan": SubCommand("plan", "show the queries that a file becomes"),
    "test": SubCommand("test", "run a file's tests on their fixtures"),
    "run": SubCommand("run", "run pipelines, many in one driver"),
    "status": SubCommand("status", "show how pipelines get on, running or not"),
    "stop": SubCommand("stop", "let a running pipeline finish its batch and end"),
    "replay-dead-letters": SubCommand("replay", "send chosen dead letters back to where they came from"),
    "reprocess": SubCommand("reprocess", "run over all of history into a new version of the outputs"),
    "switch": SubCommand("switch", "make a reprocessed version the live one"),
    "serve": SubCommand("serve", "keep Spark for the next commands, so that they start at once"),
}

EXAMPLE = """
  # orders.yaml
  name: orders-enriched
  sources:
    orders: {topic: orders, format: json, schema: "id STRING, item STRING, amount DOUBLE", start: earliest}
  steps:
    - sql: SELECT *, amount * 1.2 AS gross FROM orders WHERE amount > 0
    - expect: {rule: "gross < 1e6", otherwise: dead_letter}
  sinks:
    - {topic: orders.enriched, key: id, format: json, delivery: exactly_once}
    - {files: ./lake/orders, format: parquet, partition_by: [item]}
  errors: {retries: 3, dead_letter: orders.dead}
  limits: {trigger: 1 second, max_records: 50000}
  tests:
    - {given: {orders: fixtures/orders.jsonl}, expect: fixtures/enriched.jsonl}

  ottla pipeline lint orders.yaml          # every mistake at once, with its line
  ottla pipeline test orders.yaml          # no broker needed
  ottla pipeline run orders.yaml           # Ctrl-C ends it after the batch
  ottla pipeline status orders.yaml
  ottla pipeline replay-dead-letters orders.yaml --where "step = '2 expect'"
"""

ABOUT = """\
Data pipelines on Spark. A pipeline is a file (YAML, SQL or Python) that says where data comes from,
what happens to it and where it goes."""


def main(argv: Sequence[str] | None = None, prog: str = "ottla pipeline") -> int:
    return Family(SUBCOMMANDS, "FILE...", ABOUT, EXAMPLE).main(argv, prog)
