"""A monitor on a loop of its own, in a thread, for tests that do harm to brokers meanwhile."""

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable, Iterator

from ottla.monitoring.endtoend.monitor import EndToEnd
from ottla.monitoring.endtoend.settings import EndToEndSettings
from ottla.testing.waiting import wait_until


@contextlib.contextmanager
def running(settings: EndToEndSettings) -> Iterator[EndToEnd]:
    """A monitor on a loop of its own, in a thread."""
    made: list[EndToEnd] = []
    ready = threading.Event()
    stop: list[Callable[[], object]] = []
    failed: list[BaseException] = []

    async def work() -> None:
        monitor = EndToEnd(settings)
        made.append(monitor)
        try:
            await monitor.start()
            task = asyncio.ensure_future(monitor.run())
            loop = asyncio.get_running_loop()
            stop.append(lambda: loop.call_soon_threadsafe(task.cancel))
            ready.set()
            with contextlib.suppress(asyncio.CancelledError):
                await task
        except BaseException as error:
            failed.append(error)
            raise
        finally:
            ready.set()
            await monitor.close()

    thread = threading.Thread(target=lambda: asyncio.run(work()), name="monitor")
    thread.start()
    ready.wait(60)
    try:
        assert not failed, failed
        yield made[0]
    finally:
        for each in stop:
            each()
        thread.join(60)


def wait_for_more(monitor: EndToEnd, *, good: bool, partitions: set[int], seconds: float) -> None:
    """Until each of these partitions has had so many more good, or bad, records than now."""
    name = "good" if good else "bad"
    before = {number: getattr(monitor.by_partition[number], name) for number in partitions}
    wait_until(
        lambda: all(getattr(monitor.by_partition[number], name) >= before[number] + 3 for number in partitions),
        f"more {name} records in {sorted(partitions)}: {monitor.summary()}",
        seconds=seconds,
    )


def wait_until_noticed(fault: str, monitor: EndToEnd, *, partitions: set[int], seconds: float) -> None:
    """And say how long it took, for who runs tests with -s; how busy the machine is decides most of it."""
    began = time.monotonic()
    wait_for_more(monitor, good=False, partitions=partitions, seconds=seconds)
    print(f"{fault}: three bad records after {time.monotonic() - began:.1f} s")
