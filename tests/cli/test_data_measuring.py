"""The benchmark tools against a real broker: Kafka's flags in, Kafka's lines out."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from ottla.cli.main import main
from ottla.testing import RunningBroker

Unique = Callable[[str], str]
Captured = pytest.CaptureFixture[str]
TOTAL = re.compile(
    r"(\d+)( steady state)? records sent, [\d.]+ records/sec \([\d.]+ MB/sec\), [\d.]+ ms avg latency, "
    r"[\d.]+ ms max latency, \d+ ms 50th, \d+ ms 95th, \d+ ms 99th, \d+ ms 99\.9th\."
)
WINDOW = re.compile(
    r"\d+ records sent, [\d.]+ records/sec \([\d.]+ MB/sec\), [\d.]+ ms avg latency, [\d.]+ ms max latency\."
)
HEADER = (
    "start.time, end.time, data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec, rebalance.time.ms, "
    "fetch.time.ms, fetch.MB.sec, fetch.nMsg.sec"
)
NUMBER = r"\d+\.\d{4}"
TIME = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d:\d{3}"
ROW = re.compile(rf"{TIME}, {TIME}, {NUMBER}, {NUMBER}, (\d+), {NUMBER}, \d+, \d+, {NUMBER}, {NUMBER}")


@pytest.fixture
def produce(ottla_broker: RunningBroker) -> Callable[..., int]:
    return lambda topic, count, *arguments: main(
        ["producer-perf-test", "--bootstrap-server", ottla_broker.bootstrap, "--topic", topic, "--num-records",
         str(count), "--throughput", "-1", *arguments]
    )  # fmt: skip


@pytest.fixture
def consume(ottla_broker: RunningBroker) -> Callable[..., int]:
    return lambda *arguments: main(["consumer-perf-test", "--bootstrap-server", ottla_broker.bootstrap, *arguments])


def test_the_old_command_line_of_the_producer_benchmark(
    ottla_broker: RunningBroker, capsys: Captured, unique: Unique
) -> None:
    arguments = [
        f"--topic={unique('perf')}", "--num-records=200", "--throughput=1000", "--record-size=100", "--producer-props",
        f"bootstrap.servers={ottla_broker.bootstrap}", "batch.size=64000", "acks=all", "--print-metrics",
    ]  # fmt: skip
    assert main(["run-class", "org.apache.kafka.tools.ProducerPerformance", *arguments]) == 0
    lines = capsys.readouterr().out.splitlines()
    total = TOTAL.fullmatch(lines[0])
    assert total is not None
    assert total[1] == "200"
    assert any(
        re.fullmatch(r"producer-metrics:txmsgs:\{client-id=perf-producer-client\} +: 200\.000", x) for x in lines
    )


def test_warmup_has_its_own_summary(produce: Callable[..., int], capsys: Captured, unique: Unique) -> None:
    more = ["--record-size", "10", "--warmup-records", "300"]
    assert produce(unique("warm"), 1000, *more) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("Warmup first 300 records.")
    assert "In steady state." in lines
    matches = [match for match in map(TOTAL.fullmatch, lines) if match]
    assert [(match[1], match[2]) for match in matches] == [("1000", None), ("700", " steady state")]


def test_throughput_and_interval_lines(ottla_broker: RunningBroker, capsys: Captured, unique: Unique) -> None:
    arguments = ["--topic", unique("slow"), "--num-records", "300", "--throughput", "500", "--record-size", "10"]
    more = ["--bootstrap-server", ottla_broker.bootstrap, "--reporting-interval", "200"]
    assert main(["producer-perf-test", *arguments, *more]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any(WINDOW.fullmatch(line) for line in lines[:-1])
    rate = float(lines[-1].split(" records/sec")[0].rpartition(" ")[2])
    assert rate <= 550


def test_payloads_of_a_file_and_numbers(
    produce: Callable[..., int], ottla_broker: RunningBroker, tmp_path: Path, capsys: Captured, unique: Unique
) -> None:
    pieces = tmp_path / "pieces.txt"
    pieces.write_text("red;green;blue;")
    topic = unique("payload")
    assert produce(topic, 50, "--payload-file", str(pieces), "--payload-delimiter", ";") == 0
    assert "Number of records read: 3" in capsys.readouterr().out
    show = ["console-consumer", "--bootstrap-server", ottla_broker.bootstrap, "--from-beginning"]
    assert main([*show, "--topic", topic, "--max-messages", "50"]) == 0
    assert set(capsys.readouterr().out.split()) == {"red", "green", "blue"}
    topic = unique("numbers")
    assert produce(topic, 5, "--payload-monotonic") == 0
    capsys.readouterr()
    assert main([*show, "--topic", topic, "--max-messages", "5"]) == 0
    assert capsys.readouterr().out.split() == ["0", "1", "2", "3", "4"]


def test_a_small_buffer_makes_the_benchmark_wait_not_fail(
    produce: Callable[..., int], capsys: Captured, unique: Unique
) -> None:
    small = ["--command-property", "buffer.memory=20000", "linger.ms=1"]
    assert produce(unique("small"), 3000, "--record-size", "100", *small, "--json") == 0
    figures = json.loads(capsys.readouterr().out)
    assert figures["total"]["records"] == 3000
    assert figures["total"]["latency_ms"]["p50"] > 0


@pytest.mark.parametrize(
    "asked",
    [["--transactional-id", "perf"], ["--transaction-duration-ms", "1"], ["--command-property", "transactional.id=p"]],
    ids=["id", "duration", "property"],
)
def test_records_in_transactions_are_committed(
    produce: Callable[..., int], ottla_broker: RunningBroker, capsys: Captured, unique: Unique, asked: list[str]
) -> None:
    topic = unique("transactional")
    assert produce(topic, 2000, "--record-size", "10", *asked) == 0
    capsys.readouterr()
    show = ["console-consumer", "--bootstrap-server", ottla_broker.bootstrap, "--from-beginning", "--topic", topic]
    assert main([*show, "--isolation-level", "read_committed", "--max-messages", "2000"]) == 0
    assert len(capsys.readouterr().out.split()) == 2000


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--record-size", "10", "--transactional-id", ""], "cannot be empty"),
        (["--record-size", "10", "--transaction-duration-ms", "0"], "greater than zero"),
        (["--record-size", "0"], "greater than zero"),
        (["--record-size", "10", "--warmup-records", "100"], "fewer"),
        (["--payload-file", "no-such-file"], "cannot read"),
        (["--record-size", "10", "--command-property", "acks=9"], "acks is all"),
        (["--record-size", "10", "--command-property", "acks=1", "--producer-props", "acks=1"], "one option"),
    ],
)
def test_what_the_producer_benchmark_refuses(
    produce: Callable[..., int], capsys: Captured, arguments: list[str], reason: str
) -> None:
    assert produce("refused", 100, *arguments) == 1
    assert reason in capsys.readouterr().err


def test_the_consumer_benchmark_prints_kafkas_columns(
    produce: Callable[..., int], consume: Callable[..., int], capsys: Captured, unique: Unique
) -> None:
    topic = unique("consumed")
    assert produce(topic, 2000, "--record-size", "50") == 0
    capsys.readouterr()
    assert consume("--topic", topic, "--messages", "2000") == 0
    header, row = capsys.readouterr().out.splitlines()
    assert header == HEADER
    match = ROW.fullmatch(row)
    assert match is not None
    assert match[1] == "2000"
    assert consume("--topic", topic, "--num-records", "2000", "--json") == 0
    figures = json.loads(capsys.readouterr().out)
    assert figures["data.consumed.in.nMsg"] == 2000
    assert figures["data.consumed.in.MB"] == pytest.approx(2000 * 50 / 2**20)


def test_the_consumer_benchmark_says_when_records_are_missing(
    produce: Callable[..., int], consume: Callable[..., int], capsys: Captured, unique: Unique
) -> None:
    topic = unique("missing")
    assert produce(topic, 10, "--record-size", "5") == 0
    capsys.readouterr()
    more = ["--hide-header", "--show-detailed-stats", "--reporting-interval", "100", "--date-format", "HH:mm"]
    assert consume("--include", topic, "--num-records", "20", "--timeout", "1500", *more) == 0
    *rows, warning = capsys.readouterr().out.splitlines()
    assert warning.startswith("WARNING: Exiting before consuming the expected number of records: timeout (1500 ms)")
    assert all(re.match(r"\d\d:\d\d, 0, ", row) for row in rows)
    assert rows[-1].split(", ")[4] == "10"


@pytest.mark.parametrize("form", ["names", "positions"])
def test_end_to_end_latency(ottla_broker: RunningBroker, capsys: Captured, unique: Unique, form: str) -> None:
    topic = unique("latency")
    if form == "names":
        arguments = [
            "e2e-latency", "--bootstrap-server", ottla_broker.bootstrap, "--topic", topic, "--num-records", "20",
            "--producer-acks", "all", "--record-size", "30", "--record-key-size", "4", "--num-headers", "2",
            "--record-header-key-size", "3", "--record-header-size", "-1",
        ]  # fmt: skip
    else:
        arguments = ["run-class", "kafka.tools.EndToEndLatency", ottla_broker.bootstrap, topic, "20", "1", "30"]
    assert main(arguments) == 0
    created, first, average, percentiles, _fine = capsys.readouterr().out.splitlines()
    assert created.startswith(f'Topic "{topic}" does not exist.')
    assert re.fullmatch(r"0\t\d+\.\d+", first)
    assert re.fullmatch(r"Avg latency: \d+\.\d{4} ms", average)
    assert re.fullmatch(r"Percentiles: 50th = \d+, 99th = \d+, 99\.9th = \d+", percentiles)


def test_end_to_end_latency_as_json_and_its_limits(
    ottla_broker: RunningBroker, capsys: Captured, unique: Unique
) -> None:
    base = ["e2e-latency", "--bootstrap-server", ottla_broker.bootstrap, "--topic", unique("latency"), "--json"]
    assert main([*base, "--num-records", "5", "--producer-acks", "1", "--record-size", "3"]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert figures["records"] == 5
    assert 0 < figures["latency_ms"]["p50"] <= figures["latency_ms"]["p99.9"]
    assert main([*base, "--num-records", "5", "--producer-acks", "0", "--record-size", "3"]) == 1
    assert main(["e2e-latency", "localhost:1", "topic"]) == 1
