"""A broker in a process of its own, as seen by the test that uses it."""

import contextlib
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Self

from ottla.model.errors import OttlaError
from ottla.testing.child import guard

SettingValue = str | int | bool

# Where a test wants something else than a server: small, and no waiting for members that will not come.
TEST_SETTINGS: Mapping[str, SettingValue] = {
    "group.consumer.heartbeat.interval.ms": 200,
    "group.consumer.min.heartbeat.interval.ms": 100,
    "group.initial.rebalance.delay.ms": 0,
    "group.min.session.timeout.ms": 100,
    "offsets.topic.num.partitions": 1,
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": 500,
    "transaction.state.log.num.partitions": 1,
}
BROKERS_VARIABLE = "OTTLA_TEST_BROKERS"
# Settings that several brokers cannot share.
_OF_ONE_BROKER = {"listeners", "advertised.listeners", "node.id", "broker.id", "zookeeper.connect", "log.dirs"}
ANY_FREE_PORT = "PLAINTEXT://127.0.0.1:0"
_RUN_DIR_VARIABLE = "OTTLA_RUN_DIR"  # of cli.processes: who stops this machine's brokers does not mean a test's
START_SECONDS_MAX = 240.0
STOP_SECONDS_MAX = 30.0

# The `ottla` command itself, with one thread more. Not an import: the commands stand above this package.
_PROGRAM = (
    "import sys; from ottla.testing.child import end_with_parent; end_with_parent(); "
    "from ottla.cli.main import main; sys.exit(main())"
)

_READY = re.compile(r"accepts connections on (?P<addresses>.+)")
_ADDRESS = re.compile(r"(?P<name>[^\s:,]+)://(?:\[(?P<six>[^\]]+)\]|(?P<host>[^\s:,]+)):(?P<port>\d+)")


class BrokerDidNotStart(OttlaError):
    """The broker's process ended, or said nothing for too long. The message carries its log."""


class RunningBroker:
    """One broker. Its process may come and go (`kill`, `stop`, `restart`); its data and its address stay."""

    def __init__(self, data_dir: Path, settings: Mapping[str, SettingValue], *, for_tests: bool = True) -> None:
        self.data_dir = data_dir
        self.listeners: dict[str, tuple[str, int]] = {}
        """Where it listens: (host, port) by listener name, in the order given."""
        self._settings: dict[str, SettingValue] = {
            "listeners": ANY_FREE_PORT,
            **(TEST_SETTINGS if for_tests else {}),
            **settings,
        }
        self._settings.setdefault("log.dirs", str(data_dir / "data"))
        self._log_path = data_dir / "broker.log"
        self._process: subprocess.Popen[bytes] | None = None
        self._guard: subprocess.Popen[bytes] | None = None

    @property
    def host(self) -> str:
        return next(iter(self.listeners.values()))[0]

    @property
    def port(self) -> int:
        return next(iter(self.listeners.values()))[1]

    @property
    def bootstrap(self) -> str:
        """What a client wants as `bootstrap.servers`."""
        return self.bootstrap_of(next(iter(self.listeners)))

    def bootstrap_of(self, listener: str) -> str:
        host, port = self.listeners[listener]
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"

    @property
    def log_dirs(self) -> list[Path]:
        """Where the segments are."""
        return [Path(directory) for directory in str(self._settings["log.dirs"]).split(",")]

    @property
    def pid(self) -> int:
        return self._running().pid

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def log_text(self) -> str:
        """Everything the broker logged, over all its restarts."""
        return self._log_path.read_text(errors="replace") if self._log_path.exists() else ""

    def start(self) -> Self:
        """Start the process; returns when it accepts connections. Its address is the one it had before, if it had."""
        self.launch()
        return self.wait_until_ready()

    def launch(self) -> None:
        """Start the process, without waiting for it: the brokers of a cluster start together."""
        assert not self.running, "this broker runs already"
        self._close_pipes()
        arguments = [f"--set={name}={_as_text(value)}" for name, value in self._settings.items()]
        with self._log_path.open("ab") as log_file:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _PROGRAM, "broker", *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log_file,
                start_new_session=True,  # an interrupt at the terminal is for the test, which then stops us in order
                env={**os.environ, _RUN_DIR_VARIABLE: str(self.data_dir / "run")},
            )

    def wait_until_ready(self) -> Self:
        """Wait for a process that was launched to accept connections."""
        self._read_addresses(self._what_it_announces())
        return self

    def pause(self) -> None:
        """SIGSTOP: it holds its connections and says nothing, as a machine that swaps or a long pause would."""
        os.kill(self.pid, signal.SIGSTOP)
        self._guard = self._guard or guard(self.pid)  # paused, it could not notice that its parent has ended

    def resume(self) -> None:
        """SIGCONT."""
        os.kill(self.pid, signal.SIGCONT)
        self._dismiss_guard()

    def wipe(self) -> None:
        """Remove all its data, as a new disk would have none. It must be down."""
        assert not self.running, "the files of a broker that runs are its own"
        for directory in self.log_dirs:
            shutil.rmtree(directory, ignore_errors=True)

    def kill(self) -> None:
        """SIGKILL: nothing is flushed, nothing is said."""
        self._running().kill()
        self.wait()

    def stop(self, seconds: float = STOP_SECONDS_MAX) -> int:
        """SIGTERM: the broker finishes what is in flight, flushes and marks its shutdown as clean. The exit code."""
        self.ask_to_stop()
        return self.wait(seconds)

    def ask_to_stop(self) -> None:
        """SIGTERM, without waiting for what comes of it."""
        self._running().terminate()

    def wait(self, seconds: float = STOP_SECONDS_MAX) -> int:
        """Wait for the end of a process that was killed or asked to stop; its exit code."""
        process = self._process
        assert process is not None, "this broker was never started"
        try:
            code = process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise OttlaError(f"the broker did not end within {seconds:g} s{self._log_tail()}") from None
        self._close_pipes()
        return code

    def restart(self, settings: Mapping[str, SettingValue] | None = None) -> Self:
        """Stop it in order (unless it is down already) and start it again, with these settings changed."""
        if self.running:
            self.stop()
        self.change(settings or {})
        return self.start()

    def change(self, settings: Mapping[str, SettingValue]) -> None:
        """Settings for its next start."""
        self._settings.update(settings)

    def close(self) -> None:
        """Stop it if it runs, and let go of what this process holds of it."""
        if self.running:
            self.stop()
        self._close_pipes()

    def _running(self) -> "subprocess.Popen[bytes]":
        if self._process is None or self._process.poll() is not None:
            raise OttlaError("this broker is not running")
        return self._process

    def _what_it_announces(self) -> str:
        process = self._process
        assert process is not None
        assert process.stdout is not None
        descriptor = process.stdout.fileno()
        waiting = select.poll()  # not select(), which knows the first 1,024 descriptors of this process only
        waiting.register(descriptor, select.POLLIN)
        deadline = time.monotonic() + START_SECONDS_MAX
        said = b""
        while True:
            readable = waiting.poll(max(0.0, deadline - time.monotonic()) * 1000)
            if not readable:
                process.kill()
                process.wait()
                raise BrokerDidNotStart(f"no broker after {START_SECONDS_MAX:g} s{self._log_tail()}")
            part = os.read(descriptor, 4096)
            if not part:
                code = process.wait()
                raise BrokerDidNotStart(f"the broker ended with exit code {code}{self._log_tail()}")
            said += part
            for line in said.splitlines(keepends=True):
                if line.endswith(b"\n") and (found := _READY.search(line.decode())):
                    return found["addresses"]

    def _read_addresses(self, text: str) -> None:
        self.listeners = {
            found["name"]: (found["six"] or found["host"], int(found["port"])) for found in _ADDRESS.finditer(text)
        }
        if not self.listeners:
            raise BrokerDidNotStart(f"no address in what the broker said: {text!r}")
        # From now on the port is this one: clients that know the broker find it again after a restart.
        self._settings["listeners"] = ",".join(f"{name}://{self.bootstrap_of(name)}" for name in self.listeners)

    def _dismiss_guard(self) -> None:
        if self._guard is not None:
            self._guard.kill()
            self._guard.communicate()
            self._guard = None

    def _close_pipes(self) -> None:
        self._dismiss_guard()
        if self._process is not None:
            for pipe in (self._process.stdin, self._process.stdout):
                if pipe is not None:
                    pipe.close()

    def _log_tail(self) -> str:
        lines = self.log_text().splitlines()[-40:]
        return "".join(f"\n  {line}" for line in ("; its log ends:", *lines)) if lines else "; it logged nothing"


@contextlib.contextmanager
def broker(
    settings: Mapping[str, SettingValue] | None = None, *, data_dir: str | os.PathLike[str] | None = None
) -> Iterator[RunningBroker]:
    """A broker on a free port of 127.0.0.1, for as long as the `with` block lasts.

    `settings` are those of server.properties. Data goes to a new directory that is removed at the end, or to
    `data_dir`, which stays. Where OTTLA_TEST_BROKERS is set to more than 1, it is a cluster of so many brokers instead,
    unless the settings say where to listen or who the broker is: see `ottla.testing.as_one`.
    """
    if brokers_wanted() > 1 and not _OF_ONE_BROKER & set(settings or ()):
        from ottla.testing.as_one import cluster_as_broker  # noqa: PLC0415 - it stands on this module

        with cluster_as_broker(brokers_wanted(), settings or {}, data_dir=data_dir) as several:
            yield several
        return
    directory = Path(data_dir) if data_dir is not None else Path(tempfile.mkdtemp(prefix="ottla-"))
    directory.mkdir(parents=True, exist_ok=True)
    running = RunningBroker(directory, settings or {})
    try:
        yield running.start()
    finally:
        running.close()
        if data_dir is None:
            shutil.rmtree(directory, ignore_errors=True)


def brokers_wanted() -> int:
    """How many brokers a test gets that asks for "the broker"."""
    return int(os.environ.get(BROKERS_VARIABLE, "1"))


def _as_text(value: SettingValue) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
