"""The relays between the brokers of a test: what `links.py` starts and talks to, one line of JSON at a time."""

import asyncio
import contextlib
import json
import re
import sys
from collections.abc import Collection
from pathlib import Path

_CHUNK = 262_144
CLIENTS = -1
"""In the place of a broker's id: every client."""
_NODE_ID = re.compile(rb"node\.id=(\d+)")


class Relays:
    """Every connection between two brokers, with a gate that is shut while their link is cut."""

    def __init__(self) -> None:
        self.for_clients = False
        """Whoever connects is a client, and not one of the brokers."""
        self._cut: set[frozenset[int]] = set()
        self._gates: dict[frozenset[int], asyncio.Event] = {}
        self._connections: set[asyncio.Task[None]] = set()
        self._servers: list[asyncio.Server] = []
        self._addresses: list[bytes] = []

    async def open(self, number: int, relay_port: int, own_port: int) -> None:
        async def accepted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            assert task is not None
            self._connections.add(task)
            task.add_done_callback(self._connections.discard)
            with contextlib.suppress(OSError), contextlib.closing(writer):
                await self._relay(reader, writer, number, own_port)

        self._servers.append(await asyncio.start_server(accepted, "127.0.0.1", relay_port))
        self._addresses.append(b"://127.0.0.1:%d" % relay_port)

    def cut(self, pairs: list[list[int]]) -> None:
        self._cut = {frozenset(pair) for pair in pairs}
        for pair, gate in self._gates.items():
            if pair in self._cut:
                gate.clear()
            else:
                gate.set()

    def _gate(self, pair: frozenset[int]) -> asyncio.Event:
        gate = self._gates.get(pair)
        if gate is None:
            gate = self._gates[pair] = asyncio.Event()
            if pair not in self._cut:
                gate.set()
        return gate

    async def _relay(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int, own_port: int
    ) -> None:
        port = writer.get_extra_info("peername")[1]
        other = CLIENTS if self.for_clients else broker_with_port(port, self._addresses)
        if other is None:
            return  # nobody's link, so nobody could cut it; a broker comes again
        gate = self._gate(frozenset((number, other)))
        await gate.wait()
        there_reader, there_writer = await asyncio.open_connection("127.0.0.1", own_port)
        with contextlib.closing(there_writer):
            done, left = await asyncio.wait(
                [
                    asyncio.ensure_future(_pump(reader, there_writer, gate)),
                    asyncio.ensure_future(_pump(there_reader, writer, gate)),
                ],
                return_when=asyncio.FIRST_COMPLETED,
            )
            for task in left:
                task.cancel()
            await asyncio.gather(*done, *left, return_exceptions=True)


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, gate: asyncio.Event) -> None:
    while True:
        await gate.wait()
        data = await reader.read(_CHUNK)
        await gate.wait()  # it may have been shut meanwhile
        if not data:
            return
        writer.write(data)
        await writer.drain()


def broker_with_port(port: int, addresses: Collection[bytes]) -> int | None:
    """The id of the broker whose socket has this local port, as the command line of its process tells it.

    Only brokers that advertise one of these addresses are looked at: others may have thousands of files.
    """
    wanted = f"socket:[{_inode_of(port)}]"
    for process in Path("/proc").iterdir():
        if not process.name.isdigit():
            continue
        with contextlib.suppress(OSError):  # it has ended meanwhile
            command = process.joinpath("cmdline").read_bytes()
            found = _NODE_ID.search(command) if any(address in command for address in addresses) else None
            if found and any(_target(each) == wanted for each in process.joinpath("fd").iterdir()):
                return int(found[1])
    return None


def _target(descriptor: Path) -> str:
    """Where it leads; nowhere if it was closed meanwhile, as a busy broker does all the time."""
    try:
        return str(descriptor.readlink())
    except OSError:
        return ""


def _inode_of(port: int) -> str:
    ending = f":{port:04X}"
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        fields = line.split()
        if fields[1].endswith(ending) and fields[9] != "0":
            return fields[9]
    return ""


async def serve() -> None:
    relays = Relays()
    while line := await asyncio.to_thread(sys.stdin.readline):
        message = json.loads(line)
        relays.for_clients = message.get("for_clients", relays.for_clients)
        for number, (relay_port, own_port) in zip(message.get("ids", ()), message.get("relays", ()), strict=True):
            await relays.open(number, relay_port, own_port)
        if "cut" in message:
            relays.cut(message["cut"])
        print("done", flush=True)


def main() -> None:
    import uvloop  # noqa: PLC0415 - only this process wants it

    uvloop.run(serve())
