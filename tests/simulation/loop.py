"""An event loop whose time is a number: when nothing is ready it jumps to the next timer, and no socket is ever read.

Every callback belongs to whoever caused it: a *host*, kept in a context variable, which tasks and timers inherit. So a
host can be paused (its callbacks wait) or killed (they never run again: no `finally`, no answer, as after SIGKILL)
without its code knowing. Callbacks of one moment run in the order in which they were asked for, as asyncio promises;
chance decides only how long threads and messages take.
"""

import asyncio
import contextvars
import heapq
import random
from collections import deque
from collections.abc import Awaitable, Callable
from concurrent.futures import Executor
from typing import Any, TypeVarTuple

Ts = TypeVarTuple("Ts")
Connect = Callable[[asyncio.BufferedProtocol, str, int], Awaitable[asyncio.Transport]]
START_SECONDS = 1_000.0
CALLBACKS_MAX = 400_000
"""A run that has done this much goes round in circles without letting time pass."""


class Host:
    """Who runs callbacks: a broker's process, in one of its lives, or a client."""

    __slots__ = ("kept", "name", "paused", "stopped", "waiting")

    def __init__(self, name: str) -> None:
        self.name = name
        self.paused = False
        self.stopped = False
        self.waiting: list[asyncio.Handle] = []
        """What would have run while it was paused."""
        self.kept: list[object] = []
        """What a killed process left half done. Kept, because a coroutine that is collected runs its `finally`."""

    def __repr__(self) -> str:
        return f"Host({self.name})"


HOST: contextvars.ContextVar[Host | None] = contextvars.ContextVar("host", default=None)


class Deadlock(Exception):
    """Somebody waits, and nothing is left that could ever happen."""


class Endless(Exception):
    """The run does not come to an end."""


class Task(asyncio.Task[Any]):
    """A task that knows its host, and says nothing when it is left half done: that of a killed host always is."""

    def __init__(self, coroutine: Any, loop: "SimulatedLoop", context: contextvars.Context | None) -> None:
        self.host = HOST.get() if context is None else context.get(HOST)
        super().__init__(coroutine, loop=loop, context=context)
        self._log_destroy_pending = False


class SimulatedLoop(asyncio.BaseEventLoop):
    """Virtual time, hosts, and threads that are done after a while without being threads."""

    def __init__(self, chance: random.Random, *, thread_seconds_max: float = 0.004) -> None:
        super().__init__()
        self._chance = chance
        self._thread_seconds_max = thread_seconds_max
        self._now = START_SECONDS
        self._timers: list[tuple[float, int, asyncio.TimerHandle]] = []
        self._turns: deque[asyncio.Handle] = deque()
        self._order = 0
        self._callbacks = 0
        self.connect: Connect | None = None
        """Set by the network."""
        self.failures: list[dict[str, Any]] = []
        """What tasks and callbacks raised and nobody caught."""
        self.set_exception_handler(lambda _, context: self.failures.append(context))

    # -- time

    def time(self) -> float:
        return self._now

    @property
    def callbacks(self) -> int:
        """How many have run so far."""
        return self._callbacks

    # -- what asyncio asks of a loop

    def call_soon(
        self, callback: Callable[[*Ts], object], *args: *Ts, context: contextvars.Context | None = None
    ) -> asyncio.Handle:
        handle = asyncio.Handle(callback, args, self, context)
        self._turns.append(handle)
        return handle

    call_soon_threadsafe = call_soon

    def call_later(
        self, delay: float, callback: Callable[[*Ts], object], *args: *Ts, context: contextvars.Context | None = None
    ) -> asyncio.TimerHandle:
        return self.call_at(self._now + delay, callback, *args, context=context)

    def call_at(
        self, when: float, callback: Callable[[*Ts], object], *args: *Ts, context: contextvars.Context | None = None
    ) -> asyncio.TimerHandle:
        handle = asyncio.TimerHandle(when, callback, args, self, context)
        self._order += 1
        heapq.heappush(self._timers, (when, self._order, handle))
        return handle

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """It stays in the heap and is passed over when its time comes."""

    def run_in_executor(
        self, executor: Executor | None, func: Callable[[*Ts], Any], *args: *Ts
    ) -> "asyncio.Future[Any]":
        """The work is done at a moment between now and the end, all at once, and without a thread."""
        future = self.create_future()

        def work() -> None:
            try:
                result = func(*args)
            except (KeyboardInterrupt, SystemExit):
                raise
            except BaseException as error:  # noqa: BLE001 - the future carries it, like an executor's
                self.call_later(self._thread_delay(), _fail, future, error)
            else:
                self.call_later(self._thread_delay(), _succeed, future, result)

        self.call_later(self._thread_delay(), work)
        return future

    async def create_connection(  # type: ignore[override]
        self, protocol_factory: Any, host: Any, port: Any, **options: Any
    ) -> Any:
        """By the simulated network; there is no other."""
        assert self.connect is not None
        assert not any(options.values()), options
        protocol = protocol_factory()
        return await self.connect(protocol, host, port), protocol

    def _thread_delay(self) -> float:
        return self._chance.random() * self._thread_seconds_max

    # -- running

    def run(self, main: "asyncio.Future[Any]") -> Any:
        """Run until `main` is done. Deadlock if it never can be."""
        asyncio.events._set_running_loop(self)
        self._thread_id = 0
        try:
            while not main.done():
                self._step()
        finally:
            asyncio.events._set_running_loop(None)
        return main.result()

    def is_running(self) -> bool:
        return asyncio.events._get_running_loop() is self

    def _step(self) -> None:
        if not self._turns:
            self._jump()
        turns = self._turns
        for _ in range(len(turns)):
            handle = turns.popleft()
            if handle._cancelled:
                continue
            host = handle._context.get(HOST)  # type: ignore[attr-defined]
            if host is not None and host.stopped:
                host.kept.append(handle)
                continue
            if host is not None and host.paused:
                host.waiting.append(handle)
                continue
            self._callbacks += 1
            handle._run()
        if self._callbacks > CALLBACKS_MAX:
            raise Endless(f"{self._callbacks} callbacks and no end")

    def _jump(self) -> None:
        timers = self._timers
        while timers and timers[0][2]._cancelled:
            heapq.heappop(timers)
        if not timers:
            raise Deadlock("nothing is left to happen")
        self._now = max(self._now, timers[0][0])
        while timers and timers[0][0] <= self._now:
            self._turns.append(heapq.heappop(timers)[2])

    # -- hosts

    def create_task(
        self, coro: Any, *, name: object = None, context: contextvars.Context | None = None, **_newer: Any
    ) -> Task:
        return Task(coro, self, context)

    def resume(self, host: Host) -> None:
        host.paused = False
        self._turns.extend(host.waiting)
        host.waiting = []

    def kill(self, host: Host) -> None:
        """From here on nothing of it runs. What it had begun is kept as it is, so that nothing is tidied up."""
        host.stopped = True
        host.paused = False
        host.kept.extend(task for task in asyncio.all_tasks(self) if isinstance(task, Task) and task.host is host)
        host.kept.extend(host.waiting)
        host.waiting = []

    def close(self) -> None:
        self._turns.clear()
        self._timers.clear()
        super().close()


def host_context(host: Host) -> contextvars.Context:
    """A context in which everything is this host's doing."""
    context = contextvars.copy_context()
    context.run(HOST.set, host)
    return context


def _succeed(future: "asyncio.Future[Any]", result: object) -> None:
    if not future.done():
        future.set_result(result)


def _fail(future: "asyncio.Future[Any]", error: BaseException) -> None:
    if not future.done():
        future.set_exception(error)
