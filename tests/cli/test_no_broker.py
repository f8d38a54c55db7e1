"""Tools without a broker: each says so within seconds, none loses its input without a word, none ends well."""

import contextlib
import os
import pty
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ottla.cli.main import main
from ottla.testing import broker
from ottla.testing.waiting import wait_until

Captured = pytest.CaptureFixture[str]
TOOL = [sys.executable, "-c", "import sys; from ottla.cli.main import main; sys.exit(main())"]
NOWHERE = "127.0.0.1:1"
LINE = "Connection to node -1 (/127.0.0.1:1) could not be established. Broker may not be available."
Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def start() -> Iterator[Start]:
    started: list[subprocess.Popen[str]] = []

    def run(*arguments: str, stdin: int = subprocess.PIPE) -> "subprocess.Popen[str]":
        process = subprocess.Popen(
            [*TOOL, *arguments], stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        started.append(process)
        return process

    yield run
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()


def err_of(process: "subprocess.Popen[str]") -> str:
    assert process.stderr is not None
    return process.stderr.readline()


@pytest.mark.parametrize(
    ("arguments", "limit"),
    [
        (["console-consumer", "--topic", "t", "--timeout-ms", "300"], "--timeout-ms"),
        (["consumer-perf-test", "--topic", "t", "--num-records", "1", "--timeout", "300"], "--timeout"),
        (
            ["producer-perf-test", "--topic", "t", "--num-records", "1", "--record-size", "9", "--throughput", "-1",
             "--command-property", "max.block.ms=300"],
            "max.block.ms",
        ),
    ],
)  # fmt: skip
def test_a_bounded_tool_ends_with_an_error(capsys: Captured, arguments: list[str], limit: str) -> None:
    assert main([*arguments, "--bootstrap-server", NOWHERE]) == 1
    errors = capsys.readouterr().err
    assert LINE in errors
    assert f"error: no broker answers at {NOWHERE}, for 0.3 s ({limit})" in errors
    assert "ottla up" in errors


def test_the_latency_tool_says_so_too(capsys: Captured, tmp_path: Path) -> None:
    config = tmp_path / "client.properties"
    config.write_text("max.block.ms=300\n")
    sizes = ["--topic", "t", "--num-records", "1", "--record-size", "9", "--producer-acks", "1"]
    assert main(["e2e-latency", *sizes, "--bootstrap-server", NOWHERE, "--command-config", str(config)]) == 1
    assert LINE in capsys.readouterr().err


def test_a_pipe_is_not_emptied_into_nothing(start: Start) -> None:
    """Nothing is read before a broker answers: what stands in the pipe is there for whoever comes next."""
    reading, writing = socket.socketpair()
    with reading, writing:
        writing.sendall(b"kept\n")
        options = ["--bootstrap-server", NOWHERE, "--max-block-ms", "300"]
        process = start("console-producer", "--topic", "t", *options, stdin=reading.fileno())
        _out, errors = process.communicate(timeout=60)
        assert process.returncode == 1
        assert LINE in errors
        assert "nothing was read from standard input or sent" in errors
        assert reading.recv(100) == b"kept\n"


@pytest.mark.parametrize(
    ("tool", "code"), [("console-producer", 130), ("console-consumer", 130), ("verifiable-consumer --group-id g", 0)]
)
def test_an_open_end_is_waited_for_and_said(start: Start, tool: str, code: int) -> None:
    process = start(*tool.split(), "--topic", "t", "--bootstrap-server", NOWHERE)
    assert LINE in err_of(process)
    assert "waiting for a broker at 127.0.0.1:1" in err_of(process)
    process.send_signal(signal.SIGINT)
    _out, errors = process.communicate(timeout=60)
    assert process.returncode == code
    assert "Traceback" not in errors


def test_who_types_waits_for_as_long_as_it_takes() -> None:
    keyboard, terminal = pty.openpty()
    process = subprocess.Popen(
        [*TOOL, "console-producer", "--topic", "t", "--bootstrap-server", NOWHERE, "--max-block-ms", "1"],
        stdin=terminal, stdout=terminal, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert LINE in err_of(process)
        assert err_of(process).startswith(f"note: waiting for a broker at {NOWHERE}; start one")  # no limit is named
    finally:
        process.kill()
        process.communicate()
        os.close(keyboard)
        os.close(terminal)


@pytest.mark.one_broker("it is started again by itself")
def test_input_goes_out_when_the_broker_comes(start: Start) -> None:
    with broker() as late:
        late.kill()
        process = start("console-producer", "--topic", "late", "--bootstrap-server", late.bootstrap)
        assert "could not be established" in err_of(process)
        late.start()
        _out, errors = process.communicate("hello\n", timeout=60)
        assert (process.returncode, "a broker answers at" in errors) == (0, True)
        options = ["--from-beginning", "--max-messages", "1", "--bootstrap-server", late.bootstrap]
        assert start("console-consumer", "--topic", "late", *options).communicate(timeout=60)[0] == "hello\n"


@pytest.mark.one_broker("the only one is killed")
def test_records_that_nobody_took_are_counted(start: Start) -> None:
    with broker() as mortal:
        options = ["--bootstrap-server", mortal.bootstrap, "--command-property", "delivery.timeout.ms=1500"]
        process = start("console-producer", "--topic", "t", "--timeout", "0", "--sync", *options)
        assert process.stdin is not None
        process.stdin.write("first\n")
        process.stdin.flush()
        wait_until(lambda: _written(mortal.log_dirs[0] / "t-0"), "the first record is in its log", seconds=60)
        mortal.kill()
        # No line comes, so nothing is sent: the tool must notice by itself, while it waits for its input.
        said = _up_to_the_warning(process)
        assert "could not be established. Broker may not be available." in said
        with contextlib.suppress(BrokenPipeError):  # it has ended if the answer to the first record was lost
            process.stdin.write("lost\n")
            process.stdin.flush()
        _out, errors = process.communicate(timeout=60)
        assert process.returncode == 1
        assert "was not sent" in said + errors


def _written(log: Path) -> bool:
    return any(segment.stat().st_size for segment in log.glob("*.log"))


def _up_to_the_warning(process: "subprocess.Popen[str]") -> str:
    assert process.stderr is not None
    said = ""
    for line in process.stderr:
        said += line
        if "node" in line:
            break
    return said
