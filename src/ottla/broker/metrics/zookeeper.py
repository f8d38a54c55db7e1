"""The session with ZooKeeper, and what its servers say of themselves."""

import asyncio
import contextlib
import socket
from collections.abc import Iterator

from ottla.cluster.zookeeper.client import SessionCounts
from ottla.telemetry.declared import zookeeper
from ottla.telemetry.registry import Telemetry

ASK_INTERVAL_SECONDS = 10.0
ASK_SECONDS_MAX = 3.0
ANSWER_BYTES_MAX = 64 * 1024
DEFAULT_PORT = 2181

_SESSION = (
    zookeeper.CONNECTS,
    zookeeper.DISCONNECTS,
    zookeeper.EXPIRES,
    zookeeper.AUTH_FAILURES,
    zookeeper.SESSION_STATE,
)


def show_session(telemetry: Telemetry, counts: SessionCounts) -> None:
    telemetry.observe_one(zookeeper.LATENCY, counts.latency.read)
    telemetry.observe_together(
        _SESSION,
        lambda: (
            ((), (counts.connects, counts.disconnects, counts.expires, counts.auth_failures, int(counts.is_connected))),
        ),
    )


class ServerFigures:
    """Asks the servers every few seconds, each by itself; a scrape is told what they said last."""

    def __init__(self, connect: str) -> None:
        self._servers = servers_in(connect)
        self._said: dict[str, dict[str, str]] = {}
        self._task: asyncio.Task[None] | None = None

    def show(self, telemetry: Telemetry) -> None:
        telemetry.observe(zookeeper.UP, self._read_up)
        for name, metric in zookeeper.MNTR.items():
            telemetry.observe(metric, lambda name=name: self._read(name))  # type: ignore[misc]

    def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name="zookeeper servers")

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        while True:
            for host, port in self._servers:
                self._said[f"{host}:{port}"] = await asyncio.to_thread(ask, host, port)
            await asyncio.sleep(ASK_INTERVAL_SECONDS)

    def _read_up(self) -> Iterator[tuple[tuple[str], int]]:
        for server, said in self._said.items():
            yield (server,), int(bool(said))

    def _read(self, name: str) -> Iterator[tuple[tuple[str], float]]:
        for server, said in self._said.items():
            with contextlib.suppress(KeyError, ValueError):
                yield (server,), float(said[name])


def servers_in(connect: str) -> list[tuple[str, int]]:
    """The addresses in zookeeper.connect."""
    servers = []
    for each in connect.partition("/")[0].split(","):
        host, _, port = each.strip().rpartition(":")
        servers.append((host.strip("[]"), int(port)) if host and port.isdigit() else (each.strip(), DEFAULT_PORT))
    return servers


def ask(host: str, port: int) -> dict[str, str]:
    """What a server answers to `mntr`, by name; nothing if it does not. Blocks."""
    received = b""
    try:
        with socket.create_connection((host, port), ASK_SECONDS_MAX) as connection:
            connection.sendall(b"mntr")
            while len(received) < ANSWER_BYTES_MAX and (part := connection.recv(ANSWER_BYTES_MAX)):
                received += part
    except OSError:
        return {}
    return parse(received.decode(errors="replace"))


def parse(text: str) -> dict[str, str]:
    """A server that does not allow `mntr` says so in a sentence, which has no tab in it."""
    found = dict(line.split("\t", 1) for line in text.splitlines() if "\t" in line)
    # Since 3.6 the leader alone knows these, under names that depend on what is counted.
    for known in ("zk_leader_uptime", "zk_quorum_size"):
        if known not in found and known + "{}" in found:
            found[known] = found[known + "{}"]
    return found
