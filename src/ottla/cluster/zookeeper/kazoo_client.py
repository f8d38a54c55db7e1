"""ZooKeeperClient over kazoo, and with multi_read the only place that imports it.

Kazoo talks to the server in a thread of its own. Everything it has to say (answers, watches, events) is handed to the
event loop by that one thread, in the order in which it came over the wire: kazoo's own worker threads, which would mix
them up, are not used.
"""

import asyncio
import contextlib
import logging
import socket
import ssl
import threading
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple

from kazoo import exceptions as refusals
from kazoo.client import KazooClient, TransactionRequest
from kazoo.handlers.threading import SequentialThreadingHandler
from kazoo.protocol.connection import ConnectionHandler
from kazoo.protocol.serialization import Sync
from kazoo.protocol.states import EventType, KeeperState, WatchedEvent, ZnodeStat
from kazoo.retry import KazooRetry
from kazoo.security import ACL, CREATOR_ALL_ACL, OPEN_ACL_UNSAFE, READ_ACL_UNSAFE

from ottla.cluster.zookeeper.client import (
    AuthenticationFailed,
    BadVersion,
    ConnectionLost,
    Create,
    Delete,
    NodeDetails,
    NodeExists,
    NoNode,
    NotAllowed,
    NotEmpty,
    Operation,
    RequestRefused,
    Result,
    SessionCounts,
    SessionEvent,
    SessionExpired,
    SessionListener,
    Set,
    Stat,
    Watch,
    ZooKeeperError,
)
from ottla.cluster.zookeeper.multi_read import MultiRead

logger = logging.getLogger(__name__)

RECONNECT_SECONDS_FIRST = 0.05
RECONNECT_SECONDS_MAX = 1.0
CLOSE_SECONDS_MAX = 5.0
CONNECT_SHARE = 3
"""A connection that is not made within this part of a session timeout is tried at another server."""
SECRET_PATHS = ("/config/users",)
"""With access lists set, these are not for everybody's eyes."""

_REFUSED: dict[type[Exception], type[RequestRefused]] = {
    refusals.NoNodeError: NoNode,
    refusals.NodeExistsError: NodeExists,
    refusals.BadVersionError: BadVersion,
    refusals.NotEmptyError: NotEmpty,
    refusals.NoAuthError: NotAllowed,
    refusals.InvalidACLError: NotAllowed,
}
_EVENTS = {
    KeeperState.CONNECTED: SessionEvent.CONNECTED,
    KeeperState.CONNECTING: SessionEvent.SUSPENDED,
    KeeperState.EXPIRED_SESSION: SessionEvent.EXPIRED,
    KeeperState.AUTH_FAILED: SessionEvent.EXPIRED,  # kazoo has forgotten the session, whatever the server thinks
}


class Credentials(NamedTuple):
    """For SASL with DIGEST-MD5."""

    user: str
    password: str


class KazooZooKeeper:
    """One session after the other. `hosts` is host:port,host:port; `chroot` is empty or begins with a slash."""

    def __init__(
        self,
        hosts: str,
        *,
        chroot: str = "",
        session_timeout_ms: int = 18_000,
        requests_max: int = 10,
        credentials: Credentials | None = None,
        set_access_lists: bool = False,
        tls: ssl.SSLContext | None = None,
        creates_chroot: bool = True,
    ) -> None:
        self._hosts = hosts
        self._creates_chroot = creates_chroot
        self._chroot = chroot.rstrip("/")
        self._set_access_lists = set_access_lists
        self._loop = asyncio.get_running_loop()
        self._slots = asyncio.Semaphore(requests_max)
        self._listener: SessionListener | None = None
        self._first: asyncio.Future[None] = self._loop.create_future()
        self._state = KeeperState.CONNECTING
        self._session_id = 0
        self._closing = False
        self.counts = SessionCounts()
        self._kazoo = _client(_LoopHandler(self._loop, tls), hosts, session_timeout_ms, credentials)
        self._connection = _Connection(self._kazoo, session_timeout_ms, credentials)
        self._kazoo._connection = self._connection
        # Kazoo's simplified states leave out what we have to know: whether LOST means expired, closed or refused.
        self._kazoo._session_callback = partial(self._on_state, self._kazoo._session_callback)

    @property
    def session_id(self) -> int:
        return self._session_id

    @property
    def session_timeout_ms(self) -> int:
        return self._connection.agreed_timeout_ms

    async def start(self, listener: SessionListener, timeout_s: float) -> None:
        await asyncio.to_thread(self._kazoo.start_async)
        try:
            async with asyncio.timeout(timeout_s):
                await asyncio.shield(self._first)
                await self.sync()  # kazoo says "connected" before it shows the credentials
                if self._creates_chroot:
                    await self._create_chroot()
        except TimeoutError:
            await self.close()
            why = self._kazoo.handler.problem
            raise ConnectionLost(f"ZooKeeper at {self._hosts} did not answer within {timeout_s:g} s{why}") from None
        except ZooKeeperError as error:
            refused = self._state == KeeperState.AUTH_FAILED  # maybe before there was anything to ask
            await self.close()
            if refused:
                raise self._not_authenticated() from error
            raise
        self._listener = listener

    async def get(self, path: str, watch: Watch | None = None) -> tuple[bytes, Stat]:
        async with self._slots:
            data, stat = await self._ask(path, self._kazoo.get_async, self._rooted(path), _watcher(watch))
        return data or b"", _stat(stat)

    async def look(self, path: str) -> NodeDetails:
        """Everything that ZooKeeper tells about a node; not part of the seam, for tools."""
        async with self._slots:
            data, stat = await self._ask(path, self._kazoo.get_async, self._rooted(path))
        return NodeDetails(
            data=data or b"",
            created=stat.czxid,
            created_ms=stat.ctime,
            modified=stat.mzxid,
            modified_ms=stat.mtime,
            children_modified=stat.pzxid,
            children_version=stat.cversion,
            version=stat.version,
            acl_version=stat.aversion,
            owner=stat.ephemeralOwner,
            children=stat.numChildren,
        )

    async def get_many(self, paths: Sequence[str]) -> list[tuple[bytes, Stat] | None]:
        async with self._slots:
            results = await self._ask("", self._request, MultiRead([self._rooted(path) for path in paths]))
        return [_read(path, result) for path, result in zip(paths, results, strict=True)]

    async def exists(self, path: str, watch: Watch | None = None) -> Stat | None:
        async with self._slots:
            stat = await self._ask(path, self._kazoo.exists_async, self._rooted(path), _watcher(watch))
        return None if stat is None else _stat(stat)

    async def children(self, path: str, watch: Watch | None = None) -> list[str]:
        async with self._slots:
            names: list[str] = await self._ask(
                path, self._kazoo.get_children_async, self._rooted(path), _watcher(watch)
            )
        return names

    async def multi(self, operations: Sequence[Operation]) -> list[Result]:
        transaction = TransactionRequest(self._kazoo)
        for operation in operations:
            self._add(transaction, operation)
        async with self._slots:
            results = await self._ask("", transaction.commit_async)
        _raise_refusal(operations, results)
        return [self._result(result) for result in results]

    async def sync(self) -> None:
        async with self._slots:
            await self._ask("/", self._request, Sync(self._rooted("/")))

    async def close(self) -> None:
        self._closing = True
        if not self._first.done():
            self._first.cancel()
        # Not a thread of the loop's pool: an address that does not answer can hold kazoo up for a session timeout.
        stopped = self._loop.create_future()
        threading.Thread(target=self._stop, args=(stopped,), name="zookeeper-close", daemon=True).start()
        await asyncio.wait([stopped], timeout=CLOSE_SECONDS_MAX)

    def _stop(self, stopped: "asyncio.Future[None]") -> None:
        try:
            self._kazoo.stop()
            self._kazoo.close()
        except (refusals.WriterNotClosedException, OSError) as error:
            logger.warning("The ZooKeeper session could not be closed and ends by its timeout: %s", error)
        finally:
            self._hand_over(stopped.set_result, None)

    # -- what kazoo's thread says, and the same on the loop

    def _on_state(self, kazoo_does: Callable[[Any], None], state: Any) -> None:
        """In kazoo's thread. The loop hears of a break before kazoo fails the requests, so nobody finds it untold."""
        before = self._kazoo._state
        # On the way to the first connection, or to that of a new session, it is "connecting" as well.
        breaks = before == KeeperState.CONNECTED or state != KeeperState.CONNECTING
        if state != before and state in _EVENTS and breaks:
            self._hand_over(self._on_event, state, self._kazoo._session_id or 0)
        kazoo_does(state)

    def _hand_over(self, callback: Callable[..., None], *arguments: Any) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody is left to hear it
            self._loop.call_soon_threadsafe(callback, *arguments)

    def _on_event(self, state: Any, session_id: int) -> None:
        self._state = state
        self.counts.note(connected=state == KeeperState.CONNECTED, lost=_EVENTS[state] is SessionEvent.EXPIRED)
        self.counts.auth_failures += state == KeeperState.AUTH_FAILED
        if state == KeeperState.CONNECTED:
            self._session_id = session_id
        if self._closing:
            return
        if not self._first.done():
            if state == KeeperState.CONNECTED:
                self._first.set_result(None)
            elif state == KeeperState.AUTH_FAILED:
                self._first.set_exception(self._not_authenticated())
        elif self._listener is not None:
            self._listener(_EVENTS[state])
            if state == KeeperState.AUTH_FAILED:
                logger.error(
                    "ZooKeeper at %s: authentication failed; check the SASL or TLS credentials; trying again",
                    self._hosts,
                )
                self._loop.call_later(RECONNECT_SECONDS_MAX, self._restart)

    def _restart(self) -> None:
        """Kazoo gives up when it is refused, and takes a server that dies in the middle of it for a refusal."""
        if not self._closing:
            threading.Thread(target=self._kazoo.start_async, name="zookeeper-restart", daemon=True).start()

    # -- asking

    async def _ask(self, path: str, request: Callable[..., "_LoopResult"], *arguments: Any) -> Any:
        if self._state != KeeperState.CONNECTED or self._closing:
            raise ConnectionLost("there is no connection to ZooKeeper")
        began = self._loop.time()
        try:
            return await request(*arguments).future
        except refusals.ConnectionClosedError as error:
            raise ConnectionLost("the connection to ZooKeeper is closed") from error
        except refusals.SessionExpiredError as error:
            raise SessionExpired("the session with ZooKeeper has expired") from error
        except (refusals.ConnectionLoss, refusals.OperationTimeoutError, refusals.SessionMovedError) as error:
            raise ConnectionLost("the connection to ZooKeeper broke") from error
        except refusals.AuthFailedError as error:
            raise self._not_authenticated() from error
        except refusals.ZookeeperError as error:
            raise _refusal(error, path, 0) from error
        finally:
            self.counts.latency.record(int(1e6 * (self._loop.time() - began)))

    def _not_authenticated(self) -> AuthenticationFailed:
        return AuthenticationFailed(f"ZooKeeper at {self._hosts} refuses the credentials")

    def _request(self, request: Any) -> "_LoopResult":
        result: _LoopResult = self._kazoo.handler.async_result()
        self._kazoo._call(request, result)
        return result

    def _add(self, transaction: Any, operation: Operation) -> None:
        path = self._rooted(operation.path)
        if isinstance(operation, Create):
            acl = self._access_list(operation.path)
            transaction.create(path, operation.data, acl, operation.ephemeral, operation.sequential)
        elif isinstance(operation, Set):
            transaction.set_data(path, operation.data, operation.version)
        elif isinstance(operation, Delete):
            transaction.delete(path, operation.version)
        else:
            transaction.check(path, operation.version)

    def _access_list(self, path: str) -> list[ACL]:
        """As Kafka does it: the brokers may do everything, everybody may read what is no secret."""
        if not self._set_access_lists:
            return list(OPEN_ACL_UNSAFE)
        return [*CREATOR_ALL_ACL, *(() if path.startswith(SECRET_PATHS) else READ_ACL_UNSAFE)]

    def _result(self, result: Any) -> Result:
        if isinstance(result, ZnodeStat):
            return _stat(result)
        return result.removeprefix(self._chroot) if isinstance(result, str) else None

    def _rooted(self, path: str) -> str:
        return (self._chroot + path).rstrip("/") or "/"

    async def _create_chroot(self) -> None:
        chroot, self._chroot = self._chroot, ""
        try:
            for path in _and_above(chroot):
                if await self.exists(path) is None:
                    with contextlib.suppress(NodeExists):
                        await self.multi([Create(path, b"")])
        finally:
            self._chroot = chroot


def _and_above(path: str) -> Iterable[str]:
    parts = path.strip("/").split("/") if path else []
    return ("/" + "/".join(parts[: depth + 1]) for depth in range(len(parts)))


def _client(handler: "_LoopHandler", hosts: str, timeout_ms: int, credentials: Credentials | None) -> Any:
    return KazooClient(
        hosts=hosts,
        timeout=timeout_ms / 1000,
        handler=handler,
        sasl_options=_sasl(credentials),
        connection_retry=KazooRetry(
            max_tries=-1,
            delay=RECONNECT_SECONDS_FIRST,
            max_delay=RECONNECT_SECONDS_MAX,
            sleep_func=handler.sleep_func,
        ),
    )


def _sasl(credentials: Credentials | None) -> dict[str, str] | None:
    if credentials is None:
        return None
    return {"mechanism": "DIGEST-MD5", "username": credentials.user, "password": credentials.password}


class _Connection(ConnectionHandler):  # type: ignore[misc]
    """Kazoo's, noting the session timeout that the server agreed to: kazoo itself forgets it."""

    def __init__(self, client: Any, timeout_ms: int, credentials: Credentials | None) -> None:
        super().__init__(client, client._conn_retry.copy(), logger=client.logger, sasl_options=_sasl(credentials))
        self.agreed_timeout_ms = timeout_ms

    def _invoke(self, timeout: float, request: Any, xid: int | None = None) -> Any:
        found = super()._invoke(timeout, request, xid)
        if isinstance(found, tuple) and getattr(found[0], "time_out", 0) > 0:
            self.agreed_timeout_ms = found[0].time_out
        return found


class _LoopHandler(SequentialThreadingHandler):  # type: ignore[misc]
    """Callbacks go to the loop; there are no worker threads. Connections are made here: kazoo's own leaves sockets of
    failed handshakes open, and waits for a whole session timeout for an address that does not answer."""

    def __init__(self, loop: asyncio.AbstractEventLoop, tls: ssl.SSLContext | None) -> None:
        super().__init__()
        self._loop = loop
        self._tls = tls
        self.problem = ""
        """Why the last connection could not be made."""

    def create_connection(self, address: tuple[str, int], hostname: str, timeout: float, **_: Any) -> socket.socket:
        try:
            return self._connect(address, hostname, timeout / CONNECT_SHARE)
        except OSError as error:
            self.problem = f": {error}"
            raise

    def _connect(self, address: tuple[str, int], hostname: str, timeout: float) -> socket.socket:
        connection = socket.create_connection(address, timeout)
        try:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self._tls is not None:
                connection = self._tls.wrap_socket(connection, server_hostname=hostname)
        except BaseException:
            connection.close()
            raise
        return connection

    def start(self) -> None:
        self._running = True

    def stop(self) -> None:
        self._running = False

    def async_result(self) -> "_LoopResult":
        return _LoopResult(self._loop)

    def dispatch_callback(self, callback: Any) -> None:
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(callback.func, *callback.args)


class _LoopResult:
    """What kazoo calls an asynchronous result, as far as its client sets one: a future that is set from its thread."""

    __slots__ = ("_loop", "future")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self.future: asyncio.Future[Any] = loop.create_future()

    def set(self, value: Any = None) -> None:
        self._hand_over(self._succeed, value)

    def set_exception(self, error: Exception) -> None:
        self._hand_over(self._fail, error)

    def _hand_over(self, callback: Callable[[Any], None], argument: Any) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody is left to hear it
            self._loop.call_soon_threadsafe(callback, argument)

    def _succeed(self, value: Any) -> None:
        if not self.future.done():
            self.future.set_result(value)

    def _fail(self, error: Exception) -> None:
        if not self.future.done():
            self.future.set_exception(error)


def _watcher(watch: Watch | None) -> Callable[[WatchedEvent], None] | None:
    if watch is None:
        return None

    def called(event: WatchedEvent) -> None:
        if event.type != EventType.NONE:  # NONE is kazoo's word for "the connection broke and I have forgotten it"
            watch()

    return called


def _read(path: str, result: Any) -> tuple[bytes, Stat] | None:
    if isinstance(result, refusals.NoNodeError):
        return None
    if isinstance(result, Exception):
        raise _refusal(result, path, 0) from result
    data, stat = result
    return data or b"", _stat(stat)


def _stat(stat: ZnodeStat) -> Stat:
    return Stat(stat.version, stat.czxid, stat.mzxid, stat.ephemeralOwner, stat.numChildren)


def _raise_refusal(operations: Sequence[Operation], results: Sequence[Any]) -> None:
    """Of a multi that failed one result is the cause; those before say "rolled back", those behind "inconsistent"."""
    for index, (operation, result) in enumerate(zip(operations, results, strict=True)):
        if isinstance(result, refusals.ZookeeperError) and not isinstance(
            result, refusals.RolledBackError | refusals.RuntimeInconsistency
        ):
            raise _refusal(result, operation.path, index) from result


def _refusal(error: Exception, path: str, index: int) -> ZooKeeperError:
    kind = _REFUSED.get(type(error))
    if kind is not None:
        return kind(path, index)
    return ZooKeeperError(f"ZooKeeper answers {type(error).__name__} {error}".rstrip())
