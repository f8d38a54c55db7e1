"""console-producer and console-consumer against a real broker."""

import io
import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ottla.cli.main import main
from ottla.testing import RunningBroker

Unique = Callable[[str], str]
Captured = pytest.CaptureFixture[str]
Produce = Callable[..., int]
QUIET_MS = "4000"
TOOL = [sys.executable, "-c", "import sys; from ottla.cli.main import main; sys.exit(main())"]


@pytest.fixture
def produce(ottla_broker: RunningBroker, monkeypatch: pytest.MonkeyPatch) -> Produce:
    def run(text: str | bytes, *arguments: str) -> int:
        content = text.encode() if isinstance(text, str) else text
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
        return main(["console-producer", "--bootstrap-server", ottla_broker.bootstrap, *arguments])

    return run


@pytest.fixture
def consume(ottla_broker: RunningBroker) -> Callable[..., int]:
    return lambda *arguments: main(["console-consumer", "--bootstrap-server", ottla_broker.bootstrap, *arguments])


def segment_of(broker: RunningBroker, topic: str) -> Path:
    (found,) = (path for folder in broker.log_dirs for path in folder.glob(f"{topic}-0/*.log"))
    return found


def batch_fields(broker: RunningBroker, topic: str, capsys: Captured) -> dict[str, str]:
    capsys.readouterr()
    assert main(["dump-log", "--files", str(segment_of(broker, topic))]) == 0
    words = capsys.readouterr().out.splitlines()[2].split()
    return dict(zip(words[::2], words[1::2], strict=True))


def test_headers_keys_and_nulls_survive_the_trip(
    produce: Produce, consume: Callable[..., int], capsys: Captured, unique: Unique
) -> None:
    topic = unique("trip")
    reader = ["--property", "parse.headers=true", "--property", "parse.key=true", "--property", "null.marker=NULL"]
    assert produce("h1:v1,h2:NULL\tk1\tv1\nh3:x\tNULL\tNULL\r\nlast:1\tk2\tв\n", "--topic", topic, *reader) == 0
    columns = [f"print.{name}=true" for name in ("partition", "offset", "headers", "key")]
    options = [part for column in columns for part in ("--formatter-property", column)]
    assert consume("--topic", topic, "--from-beginning", "--max-messages", "3", *options) == 0
    captured = capsys.readouterr()
    assert captured.out.splitlines() == [
        "Partition:0\tOffset:0\th1:v1,h2:null\tk1\tv1",
        "Partition:0\tOffset:1\th3:x\tnull\tnull",
        "Partition:0\tOffset:2\tlast:1\tk2\tв",
    ]
    assert captured.err.splitlines()[-1] == "Processed a total of 3 messages"


def test_old_spellings(
    ottla_broker: RunningBroker, monkeypatch: pytest.MonkeyPatch, capsys: Captured, unique: Unique
) -> None:
    topic = unique("old")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"one\n")))
    old_producer = ["kafka.tools.ConsoleProducer", "--broker-list", ottla_broker.bootstrap, f"--topic={topic}"]
    assert main(["run-class", *old_producer, "--producer-property", "linger.ms=0"]) == 0
    old_consumer = ["kafka.tools.ConsoleConsumer", "--new-consumer", "--bootstrap-server", ottla_broker.bootstrap]
    reset = ["--consumer-property", "auto.offset.reset=earliest", "--consumer-property", "enable.auto.commit=false"]
    assert main(["run-class", *old_consumer, "--whitelist", topic, *reset, "--max-messages", "1"]) == 0
    assert capsys.readouterr().out == "one\n"


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_compression_reaches_the_log(
    produce: Produce, ottla_broker: RunningBroker, capsys: Captured, unique: Unique, codec: str
) -> None:
    topic = unique(codec)
    option = ["--compression-codec"] if codec == "gzip" else ["--compression-codec", codec]
    assert produce("words " * 50 + "\n", "--topic", topic, *option) == 0
    assert batch_fields(ottla_broker, topic, capsys)["compresscodec:"] == codec


def test_acks_decide_about_idempotence_as_in_java(
    produce: Produce, ottla_broker: RunningBroker, capsys: Captured, unique: Unique
) -> None:
    strong, weak = unique("strong"), unique("weak")
    assert produce("a\n", "--topic", strong) == 0
    assert produce("a\n", "--topic", weak, "--request-required-acks", "1") == 0
    assert int(batch_fields(ottla_broker, strong, capsys)["producerId:"]) >= 0
    assert batch_fields(ottla_broker, weak, capsys)["producerId:"] == "-1"


def test_sync_sends_a_batch_for_each_line(
    produce: Produce, ottla_broker: RunningBroker, capsys: Captured, unique: Unique
) -> None:
    topic = unique("sync")
    assert produce("a\nb\nc\n", "--topic", topic, "--sync") == 0
    assert main(["dump-log", "--files", str(segment_of(ottla_broker, topic))]) == 0
    assert sum("count: 1 " in line for line in capsys.readouterr().out.splitlines()) == 3


def test_an_unreadable_line_ends_the_run_but_what_came_before_is_sent(
    produce: Produce, consume: Callable[..., int], capsys: Captured, unique: Unique
) -> None:
    topic = unique("unreadable")
    assert produce("k\tv\nword\n", "--topic", topic, "--reader-property", "parse.key=true") == 1
    assert "no key separator found on line number 2: 'word'" in capsys.readouterr().err
    assert consume("--topic", topic, "--from-beginning", "--max-messages", "1") == 0
    assert capsys.readouterr().out == "v\n"


def test_a_record_too_large_is_an_error_in_words(produce: Produce, capsys: Captured, unique: Unique) -> None:
    limit = ["--command-property", "max.request.size=2000"]
    assert produce("x" * 5000 + "\n", "--topic", unique("large"), *limit) == 1
    assert "Message size too large" in capsys.readouterr().err


def test_only_what_was_printed_is_committed(
    produce: Produce, consume: Callable[..., int], capsys: Captured, unique: Unique
) -> None:
    topic, group = unique("committed"), unique("group")
    assert produce("".join(f"{n}\n" for n in range(5)), "--topic", topic) == 0
    assert consume("--topic", topic, "--group", group, "--from-beginning", "--max-messages", "2") == 0
    assert consume("--topic", topic, "--group", group, "--max-messages", "3") == 0
    assert capsys.readouterr().out.split() == ["0", "1", "2", "3", "4"]


def test_one_partition_from_an_offset(
    produce: Produce, consume: Callable[..., int], capsys: Captured, unique: Unique
) -> None:
    topic = unique("offset")
    assert produce("0\n1\n2\n", "--topic", topic) == 0
    assert consume("--topic", topic, "--partition", "0", "--offset", "1", "--max-messages", "2") == 0
    assert consume("--topic", topic, "--partition", "0", "--offset=earliest", "--max-messages", "1") == 0
    assert capsys.readouterr().out.split() == ["1", "2", "0"]


def test_topics_by_pattern_leave_internal_ones_out(
    produce: Produce, consume: Callable[..., int], capsys: Captured, unique: Unique
) -> None:
    prefix = unique("pattern")
    for name in ("a", "b", "other"):
        assert produce(f"{name}\n", "--topic", f"{prefix}-{name}") == 0
    pattern = f"{prefix}-(a|b)|__consumer_offsets"
    assert consume("--include", pattern, "--from-beginning", "--timeout-ms", QUIET_MS) == 0
    assert sorted(capsys.readouterr().out.split()) == ["a", "b"]


def test_json_lines(produce: Produce, consume: Callable[..., int], capsys: Captured, unique: Unique) -> None:
    topic = unique("json")
    assert produce("k\tv\n", "--topic", topic, "--property", "parse.key=true") == 0
    assert consume("--topic", topic, "--from-beginning", "--max-messages", "1", "--json") == 0
    record = json.loads(capsys.readouterr().out)
    assert (record["topic"], record["offset"], record["key"], record["value"]) == (topic, 0, "k", "v")


def test_a_record_that_cannot_be_printed(
    produce: Produce, consume: Callable[..., int], capsys: Captured, unique: Unique
) -> None:
    topic = unique("unprintable")
    assert produce("short\n12345678\n", "--topic", topic) == 0
    long = ["--value-deserializer", "org.apache.kafka.common.serialization.LongDeserializer", "--max-messages", "2"]
    assert consume("--topic", topic, "--from-beginning", *long) == 1
    assert "LongDeserializer expects 8 bytes and got 5" in capsys.readouterr().err
    assert consume("--topic", topic, "--from-beginning", *long, "--skip-message-on-error") == 0
    captured = capsys.readouterr()
    assert captured.out.strip() == str(int.from_bytes(b"12345678"))
    assert "skipping" in captured.err


def test_committed_offsets_of_a_group(
    produce: Produce, consume: Callable[..., int], capsys: Captured, unique: Unique
) -> None:
    topic, group = unique("offsets"), unique("group")
    assert produce("a\nb\n", "--topic", topic) == 0
    assert consume("--topic", topic, "--group", group, "--from-beginning", "--max-messages", "2") == 0
    capsys.readouterr()
    formatter = ["--formatter", "org.apache.kafka.tools.consumer.OffsetsMessageFormatter", "--timeout-ms", QUIET_MS]
    assert consume("--topic", "__consumer_offsets", "--from-beginning", *formatter) == 0
    commits = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    mine = [entry["value"]["data"]["offset"] for entry in commits if entry["key"]["data"]["group"] == group]
    assert mine[-1] == 2


@pytest.mark.parametrize(
    "arguments",
    [
        ["--topic", "a", "--include", "b"],
        [],
        ["--topic", "a", "--offset", "1"],
        ["--topic", "a", "--partition", "0", "--offset", "soon"],
        ["--topic", "a", "--partition", "0", "--group", "g"],
        ["--topic", "a", "--from-beginning", "--command-property", "auto.offset.reset=latest"],
        ["--topic", "a", "--group", "g", "--command-property", "group.id=h"],
        ["--topic", "a", "--command-property", "no.such.setting=1"],
        ["--include", "("],
    ],
)
def test_contradictions_are_refused_in_words(
    consume: Callable[..., int], capsys: Captured, arguments: list[str]
) -> None:
    assert consume(*arguments, "--timeout-ms", "1") == 1
    assert capsys.readouterr().err.startswith("error: ")


@pytest.fixture
def tool(ottla_broker: RunningBroker) -> Iterator[Callable[..., "subprocess.Popen[str]"]]:
    started: list[subprocess.Popen[str]] = []

    def start(name: str, *arguments: str) -> "subprocess.Popen[str]":
        command = [*TOOL, name, "--bootstrap-server", ottla_broker.bootstrap, *arguments]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        started.append(process)
        return process

    yield start
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 0)])
def test_a_signal_ends_the_consumer_in_order(
    produce: Produce,
    consume: Callable[..., int],
    tool: Callable[..., "subprocess.Popen[str]"],
    capsys: Captured,
    unique: Unique,
    number: signal.Signals,
    code: int,
) -> None:
    topic, group = unique("signal"), unique("group")
    assert produce("a\nb\n", "--topic", topic) == 0
    process = tool("console-consumer", "--topic", topic, "--group", group, "--from-beginning")
    assert process.stdout is not None
    assert [process.stdout.readline(), process.stdout.readline()] == ["a\n", "b\n"]
    process.send_signal(number)
    _out, errors = process.communicate(timeout=30)
    assert (process.returncode, errors) == (code, "Processed a total of 2 messages\n")
    assert produce("c\n", "--topic", topic) == 0
    assert consume("--topic", topic, "--group", group, "--max-messages", "1") == 0
    assert capsys.readouterr().out == "c\n"


def test_a_reader_that_goes_away_is_no_traceback(
    produce: Produce, tool: Callable[..., "subprocess.Popen[str]"], unique: Unique
) -> None:
    topic = unique("pipe")
    assert produce("".join(f"{'x' * 100} {n}\n" for n in range(5000)), "--topic", topic) == 0
    process = tool("console-consumer", "--topic", topic, "--from-beginning")
    assert process.stdout is not None
    process.stdout.readline()
    process.stdout.close()
    assert process.stderr is not None
    errors = process.stderr.read()
    assert process.wait(timeout=30) == 141
    assert "Traceback" not in errors
    assert "Processed a total of" in errors
