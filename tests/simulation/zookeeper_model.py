"""A model of a ZooKeeper ensemble and of its clients, on the loop's time and without chance of its own.

    zookeeper = ZooKeeperModel(loop, latency=lambda: chance.random() / 1000)
    client = zookeeper.client("broker-1", session_timeout_ms=6_000)       # a ZooKeeperClient

Faults: `cut` breaks a client's connection, which finds its way back; `isolate` lets nothing through in either direction
until `heal`; `expire` ends a session; `stop` and `start` take the whole ensemble away and back (sessions then get their
full time again, as with a new leader). A paused or killed process needs nothing of this: its signs of life stop.

What happens at the servers belongs to nobody (it runs in the model's own context), what happens in a client to whoever
made the client. As with TCP, messages between two ends keep their order; while nothing gets through they wait.
What it leaves out: servers that lag behind each other. A client sees the newest state at the moment its request
arrives; that its knowledge grows old on the way back is what the latency is for.
"""

import asyncio
import contextvars
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from tests.simulation.zookeeper_tree import Node, Touched, Tree

from ottla.cluster.zookeeper.client import (
    ConnectionLost,
    Create,
    Operation,
    RequestRefused,
    Result,
    SessionEvent,
    SessionListener,
    Set,
    Stat,
    Watch,
)

REQUEST_BYTES_MAX = 1_048_575
OVERHEAD_BYTES = 60
RECONNECT_SECONDS = 0.2
FIRST_SESSION = 0x1000


class _Session:
    def __init__(self, number: int, name: str, timeout_s: float) -> None:
        self.id, self.name = number, name
        self.timeout_s = timeout_s
        self.expiry: asyncio.TimerHandle | None = None
        self.connection: _Connection | None = None


class _Pipe:
    """One direction of a connection: in order, with latency, and waiting while nothing gets through."""

    def __init__(self, model: "ZooKeeperModel", name: str, context: contextvars.Context) -> None:
        self._model, self._name, self._context = model, name, context
        self._last_at = 0.0
        self._waiting: deque[Callable[[], None]] = deque()
        self.closed = False

    def send(self, message: Callable[[], None]) -> None:
        loop = self._model.loop
        self._last_at = max(self._last_at, loop.time() + self._model.latency())
        self._waiting.append(message)
        loop.call_at(self._last_at, self.deliver, context=self._model.context)

    def deliver(self) -> None:
        """The next message arrives; if it cannot, it and those behind it wait until the client is healed."""
        if self._waiting and not self.closed and self._model.reachable(self._name):
            self._model.loop.call_soon(self._arrived, self._waiting.popleft(), context=self._context)

    def deliver_all(self) -> None:
        while self._waiting and not self.closed and self._model.reachable(self._name):
            self.deliver()

    def _arrived(self, message: Callable[[], None]) -> None:
        if not self.closed:
            message()


class _Connection:
    """A client's connection. Its watches live and die with it."""

    def __init__(self, model: "ZooKeeperModel", client: "ModelClient") -> None:
        self.client = client
        self.to_server = _Pipe(model, client.name, model.context)
        self.to_client = _Pipe(model, client.name, client.context)
        self.session: _Session | None = None
        self.data_watches: dict[str, list[Watch]] = {}
        self.child_watches: dict[str, list[Watch]] = {}

    def break_off(self) -> None:
        """Both ends learn of it; what is on its way is lost."""
        self.close()
        self.client.loop.call_soon(self.client.on_broken, self, context=self.client.context)

    def close(self) -> None:
        self.to_server.closed = self.to_client.closed = True
        if self.session is not None and self.session.connection is self:
            self.session.connection = None


_Work = Callable[[_Connection], Any]
"""What a request does when it has arrived."""


class ZooKeeperModel:
    def __init__(self, loop: asyncio.AbstractEventLoop, *, latency: Callable[[], float] = lambda: 0.001) -> None:
        self.loop = loop
        self.latency = latency
        self.context = contextvars.copy_context()
        self.tree = Tree()
        self.requests = 0
        self._running = True
        self._isolated: set[str] = set()
        self._sessions: dict[int, _Session] = {}
        self._next_session = FIRST_SESSION
        self._connections: list[_Connection] = []

    def client(self, name: str, *, session_timeout_ms: int = 6_000, chroot: str = "") -> "ModelClient":
        """A client of whoever runs now; `name` is what faults call it by, several may share one."""
        return ModelClient(self, name, session_timeout_ms, chroot)

    # -- faults

    def reachable(self, name: str) -> bool:
        return self._running and name not in self._isolated

    def cut(self, name: str) -> None:
        for connection in self._of(name):
            self._drop(connection)

    def isolate(self, name: str) -> None:
        self._isolated.add(name)

    def heal(self, name: str) -> None:
        self._isolated.discard(name)
        for connection in self._of(name):
            connection.to_server.deliver_all()
            connection.to_client.deliver_all()

    def expire(self, name: str) -> None:
        for session in [each for each in self._sessions.values() if each.name == name]:
            self._end(session)

    def stop(self) -> None:
        self._running = False
        for connection in tuple(self._connections):
            self._drop(connection)
        for session in self._sessions.values():
            if session.expiry is not None:
                session.expiry.cancel()

    def start(self) -> None:
        self._running = True
        for session in self._sessions.values():
            self._heard(session)

    def _of(self, name: str) -> list[_Connection]:
        return [connection for connection in self._connections if connection.client.name == name]

    # -- sessions, at the servers

    def connect(self, connection: _Connection, session_id: int, timeout_s: float) -> None:
        """The first message of a connection: take up a session, or with 0 begin one."""
        session = self._sessions.get(session_id)
        if session is None and session_id:
            connection.to_client.send(partial(connection.client.on_expired, connection))
            return
        if session is None:
            session = _Session(self._next_session, connection.client.name, timeout_s)
            self._next_session += 1
            self._sessions[session.id] = session
        elif session.connection is not None:  # it moved here: the old connection is worth nothing any more
            self._drop(session.connection)
        connection.session, session.connection = session, connection
        self._connections.append(connection)
        self._heard(session)
        connection.to_client.send(partial(connection.client.on_connected, connection, session.id))

    def heard(self, connection: _Connection) -> None:
        if connection.session is not None:
            self._heard(connection.session)

    def ping(self, connection: _Connection) -> None:
        self.heard(connection)
        connection.to_client.send(connection.client.on_pong)

    def end_session(self, connection: _Connection) -> None:
        if connection.session is not None:
            self._end(connection.session)

    def _heard(self, session: _Session) -> None:
        if session.expiry is not None:
            session.expiry.cancel()
        session.expiry = self.loop.call_later(session.timeout_s, self._end, session, context=self.context)

    def _end(self, session: _Session) -> None:
        if self._sessions.pop(session.id, None) is None:
            return
        if session.expiry is not None:
            session.expiry.cancel()
        if session.connection is not None:
            self._drop(session.connection)
        self._notify(self.tree.end_session(session.id))

    def _drop(self, connection: _Connection) -> None:
        if connection in self._connections:
            self._connections.remove(connection)
            connection.break_off()

    # -- requests, at the servers

    def handle(
        self, connection: _Connection, answer: "asyncio.Future[Any]", work: Callable[[_Connection], Any]
    ) -> None:
        """A request has arrived: do it at once, and send the answer behind the watches that it set off."""
        session = connection.session
        if session is None or session.id not in self._sessions:
            return
        self.requests += 1
        self._heard(session)
        try:
            result = work(connection)
        except RequestRefused as error:
            connection.to_client.send(partial(connection.client.on_answer, answer, None, error))
        else:
            connection.to_client.send(partial(connection.client.on_answer, answer, result, None))

    def read(self, path: str, watch: Watch | None, connection: _Connection) -> tuple[bytes, Stat]:
        node = self.tree.node(path)
        self._watch(connection.data_watches, path, watch)
        return node.data, node.stat()

    def read_many(self, paths: Sequence[str], connection: _Connection) -> list[tuple[bytes, Stat] | None]:
        nodes = [self.tree.find(path) for path in paths]
        return [None if node is None else (node.data, node.stat()) for node in nodes]

    def look(self, path: str, watch: Watch | None, connection: _Connection) -> Stat | None:
        self._watch(connection.data_watches, path, watch)
        node: Node | None = self.tree.find(path)
        return None if node is None else node.stat()

    def names(self, path: str, watch: Watch | None, connection: _Connection) -> list[str]:
        node = self.tree.node(path)
        self._watch(connection.child_watches, path, watch)
        return list(node.children)

    def write(self, operations: Sequence[Operation], connection: _Connection) -> list[Result]:
        if _size(operations) > REQUEST_BYTES_MAX:
            self._drop(connection)  # a real server closes the connection on a request that is too large
            return []
        assert connection.session is not None
        results, touched = self.tree.apply(operations, connection.session.id)
        self._notify(touched)
        return results

    @staticmethod
    def _watch(watches: dict[str, list[Watch]], path: str, watch: Watch | None) -> None:
        if watch is not None:
            watches.setdefault(path, []).append(watch)

    def _notify(self, touched: Touched) -> None:
        for connection in tuple(self._connections):
            for watches, paths in (
                (connection.data_watches, touched.data),
                (connection.child_watches, touched.children),
            ):
                for path in paths:
                    for watch in watches.pop(path, ()):
                        connection.to_client.send(watch)


class ModelClient:
    """ZooKeeperClient over the model. It gives signs of life, notices silence, and comes back by itself."""

    def __init__(self, model: ZooKeeperModel, name: str, session_timeout_ms: int, chroot: str) -> None:
        self.model, self.name = model, name
        self.loop = model.loop
        self.context = contextvars.copy_context()
        self._timeout_ms = session_timeout_ms
        self._chroot = chroot
        self._session_id = 0
        self._takes_up = 0
        """The session that the next connection takes up, 0 when it begins one."""
        self._connection: _Connection | None = None
        self._connected = False
        self._closed = False
        self._listener: SessionListener = lambda event: None
        self._first: asyncio.Future[None] | None = None
        self._under_way: dict[asyncio.Future[Any], None] = {}
        self._heard_at = 0.0
        self._timer: asyncio.TimerHandle | None = None

    @property
    def session_id(self) -> int:
        return self._session_id

    @property
    def session_timeout_ms(self) -> int:
        return self._timeout_ms

    async def start(self, listener: SessionListener, timeout_s: float) -> None:
        self._first = self.loop.create_future()
        self._connect()
        try:
            async with asyncio.timeout(timeout_s):
                await self._first
        except TimeoutError:
            self._shut()
            raise ConnectionLost(f"ZooKeeper did not answer within {timeout_s} s") from None
        finally:
            self._first = None
        self._listener = listener
        await self._create_chroot()

    async def get(self, path: str, watch: Watch | None = None) -> tuple[bytes, Stat]:
        found: tuple[bytes, Stat] = await self._ask(partial(self.model.read, self._rooted(path), watch))
        return found

    async def get_many(self, paths: Sequence[str]) -> list[tuple[bytes, Stat] | None]:
        rooted = [self._rooted(path) for path in paths]
        found: list[tuple[bytes, Stat] | None] = await self._ask(partial(self.model.read_many, rooted))
        return found

    async def exists(self, path: str, watch: Watch | None = None) -> Stat | None:
        found: Stat | None = await self._ask(partial(self.model.look, self._rooted(path), watch))
        return found

    async def children(self, path: str, watch: Watch | None = None) -> list[str]:
        found: list[str] = await self._ask(partial(self.model.names, self._rooted(path), watch))
        return found

    async def multi(self, operations: Sequence[Operation]) -> list[Result]:
        rooted = [operation._replace(path=self._rooted(operation.path)) for operation in operations]
        results: list[Result] = await self._ask(partial(self.model.write, rooted))
        return [each.removeprefix(self._chroot) if isinstance(each, str) else each for each in results]

    async def sync(self) -> None:
        await self._ask(lambda _: None)

    async def close(self) -> None:
        connection = self._connection
        if self._connected and connection is not None:
            gone = self.loop.create_future()

            def end() -> None:
                connection.client.loop.call_soon(gone.set_result, None, context=self.context)
                self.model.end_session(connection)

            connection.to_server.send(end)
            self._fail(ConnectionLost("the client is closed"))
            self._closed = True
            await asyncio.wait([gone], timeout=self._timeout_ms / 1000)
        self._shut()

    # -- what comes back

    def on_connected(self, connection: _Connection, session_id: int) -> None:
        if connection is not self._connection or self._closed:
            return
        self._session_id = self._takes_up = session_id
        self._connected = True
        self._heard_at = self.loop.time()
        self._tick()
        if self._first is not None:
            if not self._first.done():
                self._first.set_result(None)
        else:
            self._listener(SessionEvent.CONNECTED)

    def on_expired(self, connection: _Connection) -> None:
        if connection is not self._connection or self._closed:
            return
        connection.close()
        self._takes_up = 0
        self._listener(SessionEvent.EXPIRED)
        self._connect()

    def on_pong(self) -> None:
        self._heard_at = self.loop.time()

    def on_answer(self, answer: "asyncio.Future[Any]", result: Any, error: RequestRefused | None) -> None:
        self._heard_at = self.loop.time()
        self._under_way.pop(answer, None)
        if answer.done():
            return
        if error is None:
            answer.set_result(result)
        else:
            error.path = error.path.removeprefix(self._chroot)
            answer.set_exception(error)

    def on_broken(self, connection: _Connection) -> None:
        if connection is not self._connection or self._closed:
            return
        self._suspend()

    # -- keeping the session alive

    def _connect(self) -> None:
        if self._closed:
            return
        self._connection = connection = _Connection(self.model, self)
        connection.to_server.send(partial(self.model.connect, connection, self._takes_up, self._timeout_ms / 1000))
        self._again(RECONNECT_SECONDS, self._retry, connection)

    def _retry(self, connection: _Connection) -> None:
        if connection is self._connection and not self._connected:
            connection.close()
            self._connect()

    def _tick(self) -> None:
        """A third of the timeout has passed: a sign of life; after two thirds of silence the connection is given up."""
        if not self._connected or self._connection is None:
            return
        timeout_s = self._timeout_ms / 1000
        if self.loop.time() - self._heard_at >= timeout_s * 2 / 3:
            self._connection.close()
            if self._connection in self.model._connections:
                self.model._connections.remove(self._connection)
            self._suspend()
            return
        self._connection.to_server.send(partial(self.model.ping, self._connection))
        self._again(timeout_s / 3, self._tick)

    def _suspend(self) -> None:
        was_connected, self._connected = self._connected, False
        if was_connected:
            self._listener(SessionEvent.SUSPENDED)
        self._fail(ConnectionLost("the connection to ZooKeeper broke"))
        self._again(RECONNECT_SECONDS, self._connect)

    def _again(self, seconds: float, callback: Callable[..., None], *arguments: Any) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self.loop.call_later(seconds, callback, *arguments, context=self.context)

    def _fail(self, error: ConnectionLost) -> None:
        under_way, self._under_way = self._under_way, {}
        for answer in under_way:
            if not answer.done():
                answer.set_exception(error)

    def _shut(self) -> None:
        self._closed, self._connected = True, False
        if self._timer is not None:
            self._timer.cancel()
        if self._connection is not None:
            self._connection.close()
        self._fail(ConnectionLost("the client is closed"))

    # -- asking

    async def _ask(self, work: _Work) -> Any:
        connection = self._connection
        if not self._connected or connection is None or self._closed:
            raise ConnectionLost("there is no connection to ZooKeeper")
        answer = self.loop.create_future()
        self._under_way[answer] = None
        connection.to_server.send(partial(self.model.handle, connection, answer, work))
        return await answer

    def _rooted(self, path: str) -> str:
        return (self._chroot + path).rstrip("/") or "/"

    async def _create_chroot(self) -> None:
        parts = self._chroot.strip("/").split("/") if self._chroot else []
        for depth in range(1, len(parts) + 1):
            path = "/" + "/".join(parts[:depth])
            if self.model.tree.find(path) is None:
                self.model.tree.apply([Create(path, b"")], 0)


def _size(operations: Sequence[Operation]) -> int:
    data = sum(len(operation.data) for operation in operations if isinstance(operation, Create | Set))
    return data + sum(len(operation.path) + OVERHEAD_BYTES for operation in operations)
