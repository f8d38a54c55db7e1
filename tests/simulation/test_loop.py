"""The simulated loop: time, hosts that stop, threads that are none."""

import asyncio
import random
from typing import Any

import pytest
from tests.simulation.loop import START_SECONDS, Deadlock, Host, SimulatedLoop, host_context


@pytest.fixture
def loop() -> Any:
    made = SimulatedLoop(random.Random(0))
    yield made
    made.close()


def test_time_jumps_to_the_next_timer(loop: SimulatedLoop) -> None:
    async def main() -> float:
        await asyncio.sleep(86_400)
        return asyncio.get_running_loop().time()

    assert loop.run(loop.create_task(main())) == START_SECONDS + 86_400


def test_who_waits_for_nothing_is_told(loop: SimulatedLoop) -> None:
    with pytest.raises(Deadlock):
        loop.run(loop.create_task(asyncio.Event().wait()))


def test_callbacks_of_one_moment_keep_their_order(loop: SimulatedLoop) -> None:
    order: list[int] = []

    async def main() -> None:
        for number in range(50):
            loop.call_later(1.0, order.append, number)
        await asyncio.sleep(1.0)

    loop.run(loop.create_task(main()))
    assert order == list(range(50))


def test_a_thread_takes_time_and_others_run_meanwhile(loop: SimulatedLoop) -> None:
    async def main() -> tuple[int, float]:
        before = loop.time()
        result = await asyncio.to_thread(lambda: 5)
        return result, loop.time() - before

    result, took = loop.run(loop.create_task(main()))
    assert result == 5
    assert took > 0


def test_what_a_thread_raises_arrives(loop: SimulatedLoop) -> None:
    def fail() -> None:
        raise OSError("disk")

    async def main() -> None:
        await asyncio.to_thread(fail)

    with pytest.raises(OSError, match="disk"):
        loop.run(loop.create_task(main()))


class Ticking:
    """Ticks once a second in a host, and says when it is tidied up."""

    def __init__(self, loop: SimulatedLoop) -> None:
        self.host = Host("one")
        self.ticks: list[float] = []
        self.tidied = False
        self._loop = loop
        self._task = loop.create_task(self._run(), context=host_context(self.host))

    async def _run(self) -> None:
        try:
            while True:
                await asyncio.sleep(1.0)
                self.ticks.append(self._loop.time() - START_SECONDS)
        finally:
            self.tidied = True


def test_a_paused_host_does_nothing_and_goes_on_late(loop: SimulatedLoop) -> None:
    async def main() -> Ticking:
        ticking = Ticking(loop)
        await asyncio.sleep(2.5)
        ticking.host.paused = True
        await asyncio.sleep(3.0)
        loop.resume(ticking.host)
        await asyncio.sleep(1.2)
        return ticking

    assert loop.run(loop.create_task(main())).ticks == [1.0, 2.0, 5.5, 6.5]


def test_a_killed_host_does_nothing_ever_again(loop: SimulatedLoop) -> None:
    async def main() -> Ticking:
        ticking = Ticking(loop)
        await asyncio.sleep(1.5)
        loop.kill(ticking.host)
        await asyncio.sleep(10.0)
        return ticking

    ticking = loop.run(loop.create_task(main()))
    assert ticking.ticks == [1.0]
    assert not ticking.tidied, "a killed process runs no finally"


def test_what_a_host_starts_is_its_own(loop: SimulatedLoop) -> None:
    done: list[str] = []

    async def child() -> None:
        await asyncio.sleep(1.0)
        done.append("child")

    async def parent() -> None:
        loop.call_later(1.0, done.append, "timer")
        await asyncio.gather(child(), asyncio.to_thread(lambda: None))

    async def main() -> None:
        host = Host("one")
        loop.create_task(parent(), context=host_context(host))
        await asyncio.sleep(0.5)
        loop.kill(host)
        await asyncio.sleep(2.0)

    loop.run(loop.create_task(main()))
    assert done == []
