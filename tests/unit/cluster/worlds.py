"""The same tests on a model of ZooKeeper, in virtual time, and on a real server that can be cut off."""

import asyncio
import contextlib
from collections.abc import Callable, Coroutine
from typing import Any, Protocol, TypeVar

from kazoo.client import KazooClient
from tests.simulation.zookeeper_model import ZooKeeperModel
from tests.virtual_time import end, virtual_loop

from ottla.cluster.zookeeper.client import ZooKeeperClient
from ottla.cluster.zookeeper.kazoo_client import KazooZooKeeper

T = TypeVar("T")


class World(Protocol):
    """Somewhere clients of ZooKeeper live, with what can happen to them."""

    timeout_ms: int

    def run(self, main: Coroutine[Any, Any, T]) -> T: ...
    def client(self, name: str, *, chroot: str = "") -> ZooKeeperClient: ...
    def cut(self, name: str) -> None:
        """Break its connection; it comes back by itself."""

    def swallow_answers(self, name: str) -> None:
        """Requests arrive, answers do not, until it is cut."""

    async def expire(self, name: str) -> None:
        """The servers declare its session over."""


class ModelWorld:
    timeout_ms = 6_000

    def __init__(self) -> None:
        self.loop = virtual_loop()
        self.model = ZooKeeperModel(self.loop)

    def run(self, main: Coroutine[Any, Any, T]) -> T:
        result: T = self.loop.run(self.loop.create_task(main))
        return result

    def client(self, name: str, *, chroot: str = "") -> ZooKeeperClient:
        return self.model.client(name, session_timeout_ms=self.timeout_ms, chroot=chroot)

    def cut(self, name: str) -> None:
        self.model.cut(name)

    def swallow_answers(self, name: str) -> None:
        for connection in self.model._of(name):
            connection.to_client.deliver = lambda: None  # type: ignore[method-assign]

    async def expire(self, name: str) -> None:
        self.model.expire(name)

    def close(self) -> None:
        end(self.loop)


class Proxy:
    """Between one client and the server: what comes back can be kept from it, and the connection be cut."""

    def __init__(self, target_port: int) -> None:
        self._target_port = target_port
        self._server: asyncio.Server | None = None
        self._writers: list[asyncio.StreamWriter] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self.swallow = False
        self.port = 0

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]

    def cut(self) -> None:
        self.swallow = False
        for writer in self._writers:
            writer.transport.abort()
        self._writers.clear()

    async def close(self) -> None:
        self.cut()
        assert self._server is not None
        self._server.close()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        to_reader, to_writer = await asyncio.open_connection("127.0.0.1", self._target_port)
        self._writers += [writer, to_writer]
        back = asyncio.create_task(self._copy(to_reader, writer, back=True))
        self._tasks.add(back)
        await self._copy(reader, to_writer, back=False)
        await back

    async def _copy(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, back: bool) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(65_536):
                if not (back and self.swallow):
                    writer.write(data)
        writer.close()


class RealWorld:
    timeout_ms = 6_000

    def __init__(self, port: int, chroot: str) -> None:
        self._port = port
        self._chroot = chroot
        self._runner = asyncio.Runner()
        self._proxies: dict[str, Proxy] = {}
        self._clients: dict[str, KazooZooKeeper] = {}

    def run(self, main: Coroutine[Any, Any, T]) -> T:
        return self._runner.run(main)

    def client(self, name: str, *, chroot: str = "") -> ZooKeeperClient:
        return _ProxiedClient(self, name, self._chroot + chroot)

    async def connect(self, name: str, chroot: str) -> KazooZooKeeper:
        if name not in self._proxies:
            self._proxies[name] = proxy = Proxy(self._port)
            await proxy.start()
        self._clients[name] = KazooZooKeeper(
            f"127.0.0.1:{self._proxies[name].port}", chroot=chroot, session_timeout_ms=self.timeout_ms
        )
        return self._clients[name]

    def cut(self, name: str) -> None:
        self._proxies[name].cut()

    def swallow_answers(self, name: str) -> None:
        self._proxies[name].swallow = True

    async def expire(self, name: str) -> None:
        kazoo = self._clients[name]._kazoo
        twin = KazooClient(f"127.0.0.1:{self._port}", client_id=(kazoo._session_id, kazoo._session_passwd))

        def end_its_session() -> None:
            twin.start()
            twin.stop()
            twin.close()

        await asyncio.to_thread(end_its_session)

    def close(self) -> None:
        self._runner.run(self._close_proxies())
        self._runner.close()

    async def _close_proxies(self) -> None:
        for proxy in self._proxies.values():
            await proxy.close()


class _ProxiedClient(KazooZooKeeper):
    """Needs its proxy's port before it can be built, so it builds itself when it is started."""

    def __init__(self, world: RealWorld, name: str, chroot: str) -> None:
        self._world, self._name, self._root = world, name, chroot

    async def start(self, listener: Any, timeout_s: float) -> None:
        self.__dict__ = (await self._world.connect(self._name, self._root)).__dict__
        await super().start(listener, timeout_s)


async def until(condition: Callable[[], object], seconds: float = 20.0) -> None:
    """Let time pass until it is so."""
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 (what tests wait for is not theirs to signal)
            await asyncio.sleep(0.01)
