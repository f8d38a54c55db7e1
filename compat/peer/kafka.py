"""Apache Kafka as a peer: fetched from a Maven repository into .peer/, run on free loopback ports.

The benchmarks run it beside Ottla; the compatibility tests use its tools and its client.
"""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PEER = ROOT / ".peer"
LIBS = PEER / "libs"
TOOL_S_MAX = 120
POM = Path(__file__).with_name("pom.xml")

# The flags that Kafka's own start script passes.
SERVER_FLAGS = (
    "-Xms1g",
    "-Xmx1g",
    "-server",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
    "-Djava.awt.headless=true",
)

# As properties, the one form that Log4j reads without libraries beside it.
LOGGING = """\
appender.out.type=Console
appender.out.name=OUT
appender.out.layout.type=PatternLayout
appender.out.layout.pattern=[%d] %p %m (%c)%n
rootLogger.level=LEVEL
rootLogger.appenderRef.out.ref=OUT
"""


class PeerError(Exception):
    """The peer could not be fetched, started or stopped; the text says what to do."""


def require(program: str, *, why: str) -> str:
    """The path of a program, or an error that names what is missing and what for."""
    path = shutil.which(program)
    if path is None:
        raise PeerError(f"{program} is not installed; it is needed {why}")
    return path


def fetch() -> Path:
    """The folder with the jars of Apache Kafka."""
    return fetch_jars(POM, LIBS, "Apache Kafka")


def fetch_jars(pom: Path, folder: Path, what: str) -> Path:
    """The folder of jars that a pom asks for, filled by Maven when the pom has changed since the last time."""
    stamp = PEER / f"{pom.stem}.fetched"
    if stamp.exists() and stamp.read_bytes() == pom.read_bytes():
        return folder
    maven = require("mvn", why=f"to fetch {what} (Debian: apt install maven)")
    require("java", why=f"to run {what} (Debian: apt install openjdk-17-jdk-headless)")
    shutil.rmtree(folder, ignore_errors=True)
    PEER.mkdir(exist_ok=True)
    goal = ["dependency:copy-dependencies", f"-DoutputDirectory={folder}", "-DincludeScope=runtime"]
    done = subprocess.run([maven, "-B", "-q", "-f", str(pom), *goal], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise PeerError(f"Maven could not fetch {what}:\n{done.stdout}{done.stderr}")
    stamp.write_bytes(pom.read_bytes())
    return folder


def java_command(
    main_class: str, *arguments: str, flags: Sequence[str] = (), classpath: str | None = None, level: str = "WARN"
) -> list[str]:
    """The command line that runs one of Kafka's classes, or a class that is elsewhere."""
    logging = _logging_file(level)
    java = require("java", why="to run Apache Kafka and its tools (Debian: apt install openjdk-17-jdk-headless)")
    classpath = classpath or f"{fetch()}/*"
    return [java, *flags, f"-Dlog4j2.configurationFile={logging}", "-cp", classpath, main_class, *arguments]


def free_port() -> int:
    """A loopback port that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _logging_file(level: str) -> Path:
    PEER.mkdir(exist_ok=True)
    path = PEER / f"log4j2-{level.lower()}.properties"
    text = LOGGING.replace("LEVEL", level)
    if not path.exists() or path.read_text() != text:
        path.write_text(text)
    return path


class Kafka:
    """One Kafka node, broker and controller in one process, with its files under `directory`."""

    format_options: Sequence[str] = ("--standalone",)

    def __init__(
        self,
        directory: Path,
        *,
        settings: Mapping[str, str] | None = None,
        port: int = 0,
        more_listeners: Sequence[str] = (),
    ) -> None:
        """`more_listeners` beside PLAINTEXT, as NAME://host:port; the settings say what they speak."""
        self.directory = directory
        self._more_listeners = more_listeners
        self.port = port or free_port()
        self._controller_port = free_port()
        self._settings = dict(settings or {})
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def bootstrap(self) -> str:
        """Where clients connect."""
        return f"127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        """The process id of the running node."""
        if self._process is None:
            raise PeerError("Apache Kafka is not running")
        return self._process.pid

    @property
    def log_dir(self) -> Path:
        """The directory with the partitions' folders."""
        return self.directory / "data"

    def format(self, *, extra: Sequence[str] = ()) -> None:
        """Write the property file, and what Kafka wants to find in an empty data directory."""
        self._write_properties()
        if (self.log_dir / "meta.properties").exists():
            return
        # Any 16 bytes in URL-safe base64 serve as a cluster id.
        arguments = ["format", "-t", "b3R0bGEtcGVlci1jbHVzdA", "-c", str(self._property_file)]
        arguments += [*self.format_options, *extra]
        command = java_command("kafka.tools.StorageTool", *arguments)
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise PeerError(f"formatting failed:\n{done.stdout}{done.stderr}")

    def _write_properties(self) -> None:
        self.directory.mkdir(parents=True, exist_ok=True)
        lines = [f"{name}={value}" for name, value in self._properties().items()]
        self._property_file.write_text("\n".join(lines) + "\n")

    def launch(self) -> None:
        """Start the process without waiting for it to serve."""
        logging = _logging_file("INFO")
        command = ["java", *SERVER_FLAGS, f"-Dlog4j2.configurationFile={logging}", "-cp", f"{fetch()}/*"]
        with open(self.directory / "server.log", "ab") as log:
            self._process = subprocess.Popen(
                [*command, "kafka.Kafka", str(self._property_file)], stdout=log, stderr=log, stdin=subprocess.DEVNULL
            )

    def start(self, *, wait_s: float = 60.0) -> None:
        """Format when new, start, and wait until the listener accepts connections."""
        self.format()
        self.launch()
        deadline = time.monotonic() + wait_s
        while time.monotonic() < deadline:
            if self._process is not None and self._process.poll() is not None:
                raise PeerError(f"Apache Kafka ended at once:\n{self._log_tail()}")
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), timeout=1):
                return
            time.sleep(0.05)
        raise PeerError(f"Apache Kafka did not listen within {wait_s:.0f} s:\n{self._log_tail()}")

    def stop(self, *, wait_s: float = 60.0) -> None:
        """Stop in an orderly way; kill what does not end in time."""
        process, self._process = self._process, None
        if process is None:
            return
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(wait_s)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def kill(self) -> None:
        """End the process as a crash would."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()

    @property
    def _property_file(self) -> Path:
        return self.directory / "server.properties"

    def _properties(self) -> dict[str, str]:
        own = (f"PLAINTEXT://127.0.0.1:{self.port}", f"CONTROLLER://127.0.0.1:{self._controller_port}")
        listeners = ",".join((*own, *self._more_listeners))
        return {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.bootstrap.servers": f"127.0.0.1:{self._controller_port}",
            "listeners": listeners,
            "advertised.listeners": listeners,
            "inter.broker.listener.name": "PLAINTEXT",
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
            "log.dirs": str(self.log_dir),
            "offsets.topic.replication.factor": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "share.coordinator.state.topic.replication.factor": "1",
            "share.coordinator.state.topic.min.isr": "1",
            **self._settings,
        }

    def _log_tail(self) -> str:
        return (self.directory / "server.log").read_text(errors="replace")[-3000:]


@contextlib.contextmanager
def running(directory: Path, *, settings: Mapping[str, str] | None = None) -> Iterator[Kafka]:
    """A node that runs while the block does."""
    node = Kafka(directory, settings=settings)
    node.start()
    try:
        yield node
    finally:
        node.stop()


def run_tool(main_class: str, *arguments: str, stdin: str | None = None, with_stderr: bool = False) -> str:
    """Run one of Kafka's command-line tools and give back what it printed; its failure is an error with its output."""
    done = subprocess.run(
        java_command(main_class, *arguments, flags=("-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")),
        input=stdin,
        capture_output=True,
        text=True,
        timeout=TOOL_S_MAX,
        env={**os.environ, "LC_ALL": "C.UTF-8"},
        check=False,
    )
    if done.returncode != 0:
        raise PeerError(f"{main_class} {' '.join(arguments)} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout + done.stderr if with_stderr else done.stdout
