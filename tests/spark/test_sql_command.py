"""`ottla sql` on real Spark: topics as tables, in every format, as a whole and as they grow."""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.spark.feeding import MakeTopic, Records

from ottla.cli.common.output import CommandError
from ottla.cli.main import main
from ottla.cli.pipeline.sql_output import output_for
from ottla.cli.pipeline.sql_running import run
from ottla.cli.pipeline.sql_tables import TopicAccess
from ottla.cli.pipeline.sql_text import quote_topics

Look = Callable[..., list[dict[str, object]]]


@pytest.fixture
def look(spark: SparkSession, records: Records, capsys: pytest.CaptureFixture[str]) -> Look:
    def look(sql: str, topics: list[str], **options: object) -> list[dict[str, object]]:
        limit: Any = options.pop("limit", None)
        given: dict[str, Any] = {"start": "earliest", "follow": False, **options}
        looking = TopicAccess(client={"bootstrap.servers": records.bootstrap}, **given)
        run(spark, quote_topics(sql, topics), topics, looking, output=output_for("json"), limit=limit)
        return [json.loads(line) for line in capsys.readouterr().out.splitlines()]

    return look


def test_a_topic_is_a_table_of_text(make_topic: MakeTopic, records: Records, look: Look) -> None:
    topic = make_topic("sql.text")
    records.send(topic, ["one", b"tw\xff", None], keys=["a", "b", None], headers=[("h", b"\x01")], timestamp_ms=5)
    rows = look(f"SELECT * FROM {topic}", [topic])
    assert [(row["key"], row["value"], row["offset"]) for row in rows] == [
        ("a", "one", 0),
        ("b", "tw�", 1),
        (None, None, 2),
    ]
    assert rows[0]["timestamp"] == "1970-01-01T00:00:00.005Z"
    assert rows[0]["headers"] == [{"key": "h", "value": "AQ=="}]


def test_fields_of_json_are_guessed_and_bad_records_are_shown(
    make_topic: MakeTopic, records: Records, look: Look
) -> None:
    topic = make_topic("sql-json")
    records.send(topic, ['{"id": 1, "in": {"x": [1.5]}}', "no json", '{"id": 2}'])
    rows = look(f"SELECT id, in, _offset, _error FROM {topic} ORDER BY _offset", [topic], formats={topic: "json"})
    assert [row["id"] for row in rows] == [1, None, 2]
    assert rows[0]["in"] == {"x": [1.5]}
    assert rows[0]["_error"] is None
    assert rows[1]["_error"] is not None


def test_a_given_schema_is_used_and_two_topics_join(make_topic: MakeTopic, records: Records, look: Look) -> None:
    left, right = make_topic("sql.left"), make_topic("sql.right")
    records.send(left, ['{"id": "a", "amount": 1}', '{"id": "b", "amount": 2}'])
    records.send(right, ['{"id": "b", "name": "Bea"}'])
    rows = look(
        f"SELECT name, amount FROM {left} JOIN {right} USING (id)", [left, right],
        schemas={left: "id STRING, amount DECIMAL(9,2)", right: "id STRING, name STRING"},
    )  # fmt: skip
    assert rows == [{"name": "Bea", "amount": "2.00"}]


def test_a_look_can_start_at_a_time_and_end_at_a_limit(make_topic: MakeTopic, records: Records, look: Look) -> None:
    topic = make_topic("sql_times")
    for moment in (1_000, 2_000, 3_000):
        records.send(topic, [str(moment)], timestamp_ms=moment)
    assert [row["value"] for row in look(f"SELECT value FROM {topic}", [topic], start="1500")] == ["2000", "3000"]
    assert len(look(f"SELECT value FROM {topic}", [topic], limit=2)) == 2


def test_following_prints_what_comes(make_topic: MakeTopic, records: Records, look: Look) -> None:
    topic = make_topic("sql_follow")
    records.send(topic, ["1", "2"])
    sender = threading.Timer(1.0, lambda: records.send(topic, ["3"]))
    sender.start()
    rows = look(f"SELECT value FROM {topic}", [topic], follow=True, limit=3)
    sender.join()
    assert [row["value"] for row in rows] == ["1", "2", "3"]


def test_following_counts_shows_those_that_changed(make_topic: MakeTopic, records: Records, look: Look) -> None:
    topic = make_topic("sql_count")
    records.send(topic, ["a", "b", "a"])
    rows = look(f"SELECT value, count(*) AS n FROM {topic} GROUP BY value", [topic], follow=True, limit=2)
    assert {(row["value"], row["n"]) for row in rows} == {("a", 2), ("b", 1)}


@pytest.mark.parametrize(
    ("sql", "options", "words"),
    [
        ("SELECT valu FROM {topic}", {}, "`value`"),
        ("SELECT * FROM {topic} WHERE (", {}, "\n  SELECT * FROM "),
        ("WITH t AS (SELECT 1) SELECT * FROM {topic} JOIN u", {}, "there is no topic `u`"),
        ("SELECT * FROM {topic} ORDER BY value", {"follow": True}, "Sorting is not supported"),
        ("SELECT 1", {"follow": True}, "nothing to follow"),
        ("SELECT * FROM {topic}", {"formats": "json"}, "its fields cannot be guessed: name them with --schema"),
        ("SELECT cast(value AS INT) FROM {topic}", {}, "cannot be cast"),
    ],
)
def test_complaints_are_sentences(
    sql: str, options: dict[str, object], words: str, make_topic: MakeTopic, records: Records, look: Look
) -> None:
    topic = make_topic("sqlwrong")
    records.send(topic, ["x"])
    if "formats" in options:
        options = {"formats": {topic: options["formats"]}}
    with pytest.raises(CommandError) as told:
        look(sql.format(topic=topic), [topic], **options)
    assert words in str(told.value)
    assert "\tat " not in str(told.value)
    assert "SQLSTATE" not in str(told.value)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["SELECT * FROM nowhere-at-all"], "there is no topic `nowhere-at-all`"),
        (["DROP TABLE x"], "changes nothing: write SELECT"),
        (["SELECT 1", "--from", "yesterday"], "--from wants earliest, latest or a time"),
        (["SELECT 1", "--from", "latest"], "add --follow"),
        (["SELECT 1", "--limit", "0"], "--limit wants at least 1"),
        (["SELECT 1", "--format", "nowhere=json"], "--format: there is no topic `nowhere`"),
    ],
)
def test_what_is_wrong_is_told_before_spark_starts(
    arguments: list[str], words: str, records: Records, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["sql", *arguments, "--bootstrap-server", records.bootstrap]) == 1
    assert words in capsys.readouterr().err


def test_the_command_as_a_whole(make_topic: MakeTopic, records: Records) -> None:
    """In a process of its own, following until Ctrl-C, as CSV."""
    topic = make_topic("sql-whole")
    records.send(topic, ['{"id": 1, "name": "x,y"}'])
    process = subprocess.Popen(
        [sys.executable, "-c", "import ottla.cli.main; raise SystemExit(ottla.cli.main.main())", "sql",
         f"SELECT id, name FROM {topic}", "--format", f"{topic}=json", "--csv", "--follow", "--from", "earliest",
         "--master", "local[2]", "--conf", "spark.driver.memory=512m"],
        env={**os.environ, "OTTLA_BOOTSTRAP": records.bootstrap},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        assert [process.stdout.readline() for _ in range(2)] == ["id,name\n", '1,"x,y"\n']
        process.send_signal(signal.SIGINT)
        _, words = process.communicate(timeout=60)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 0, words
    assert "1 row, " in words
    assert "WARN" not in words
