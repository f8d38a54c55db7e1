"""What a request costs its client, seen at its connection."""

import asyncio

import pytest
from tests.unit.broker.server.by_hand import ByHand, MemoryChannel

from ottla.broker.handlers.context import NO_RESPONSE, Call, Parked, Raw
from ottla.broker.quotas.clients import ClientQuotas
from ottla.broker.server.answer import Answer
from ottla.broker.server.channel import Buffer
from ottla.broker.server.charging import charge, timed
from ottla.broker.session import Session
from ottla.protocol.apis import ApiKey

ANYBODY = (("users", "ANONYMOUS"),)
MS = 1_000_000


def quotas(**values: str) -> ClientQuotas:
    made = ClientQuotas()
    made.use({ANYBODY: values})
    return made


def answer(key: ApiKey = ApiKey.PRODUCE, busy_ms: int = 0, **more: bool) -> Answer:
    call = Call(key, 9, "app", Session("PLAINTEXT", "h"), **more)
    return Answer(call, 1, True, Raw([b""], 0), dispatched_ns=1000 * MS, local_done_ns=(1000 + busy_ms) * MS)


def test_a_produce_is_charged_its_whole_size_and_nothing_else_is() -> None:
    rules = quotas(producer_byte_rate="100")
    assert charge(rules, answer(), 1000) == 0
    assert charge(rules, answer(ApiKey.HEARTBEAT), 10_000) == 0
    assert charge(rules, answer(exempt=True), 10_000) == 0
    assert charge(rules, answer(), 100) == 1_000


def test_time_is_charged_to_all_that_want_an_answer() -> None:
    rules = quotas(request_percentage="10")
    assert charge(rules, answer(ApiKey.METADATA, busy_ms=1000), 1) == 0, "a tenth of ten seconds"
    silent = answer(busy_ms=500)
    silent.outcome = NO_RESPONSE
    assert charge(rules, silent, 1) == 0
    assert charge(rules, answer(ApiKey.FETCH, busy_ms=500, exempt=True), 1) == 0
    assert charge(rules, answer(ApiKey.FETCH, busy_ms=20), 1) == 200, "what 20 ms are worth"
    assert charge(rules, answer(ApiKey.FETCH, busy_ms=5000), 1) == 1000


def test_the_longest_of_several_waits_counts() -> None:
    rules = quotas(producer_byte_rate="1", request_percentage="10")
    assert charge(rules, answer(busy_ms=0), 40) == 30_000
    assert charge(rules, answer(ApiKey.METADATA, busy_ms=1100), 40) == 1_000


def test_work_that_waits_is_charged_for_what_it_ran() -> None:
    rules = quotas(request_percentage="0.000001")
    call = Call(ApiKey.CREATE_TOPICS, 5, "app", Session("PLAINTEXT", "h"))

    async def work() -> int:
        for _ in range(3):
            await asyncio.sleep(0)
        return 7

    async def main() -> None:
        assert await timed(rules, call, work()) == 7
        assert call.throttle_ms == 1000
        assert rules.requests is not None
        budget = rules.requests.of(call.session.entity, 0)
        assert budget is not None
        assert 0 < budget.used(0) < 10**9

    asyncio.run(main())


def test_work_that_is_cancelled_or_fails_does_so() -> None:
    rules = quotas(request_percentage="50")
    call = Call(ApiKey.CREATE_TOPICS, 5, "app", Session("PLAINTEXT", "h"))
    seen = []

    async def patient() -> None:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            seen.append("cancelled")
            raise

    async def failing() -> None:
        await asyncio.sleep(0)
        raise ValueError("no")

    async def main() -> None:
        task = asyncio.ensure_future(timed(rules, call, patient()))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        with pytest.raises(ValueError, match="no"):
            await timed(rules, call, failing())

    asyncio.run(main())
    assert seen == ["cancelled"]


def test_a_throttled_connection_reads_nothing_more_even_while_its_answer_waits_for_replicas() -> None:
    by_hand = ByHand()
    by_hand.dispatcher.key = ApiKey.PRODUCE
    by_hand.dispatcher.quotas.use({ANYBODY: {"producer_byte_rate": "1"}})
    parked: list[Parked] = []

    def park(request: bytes) -> Parked:
        parked.append(Parked(holds_connection=False))
        return parked[-1]

    by_hand.dispatcher.answer_with = park
    by_hand.arrive(b"12345678" * 2, b"next-one")
    assert len(parked) == 1, "16 bytes are 6 seconds too many"
    by_hand.loop.advance(5.0)
    assert len(parked) == 1
    parked[0].resolve(Raw([bytearray(4)], 4, 0))
    by_hand.loop.run()
    assert by_hand.answers() == [(6000).to_bytes(4, "big")], "told at once, and for as long again from now on"
    by_hand.loop.advance(5.9)
    assert len(parked) == 1
    by_hand.loop.advance(0.1)
    assert len(parked) == 2
    assert by_hand.closed == []


def test_sending_counts_as_time_of_the_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    send = MemoryChannel.send

    def slow_send(channel: MemoryChannel, data: Buffer) -> int:
        by_hand.now_ns += 40 * MS
        return send(channel, data)

    monkeypatch.setattr(MemoryChannel, "send", slow_send)
    by_hand = ByHand()
    by_hand.now_ns = MS
    by_hand.dispatcher.quotas.use({ANYBODY: {"request_percentage": "50"}})
    by_hand.arrive(b"12345678")
    requests = by_hand.dispatcher.quotas.requests
    assert requests is not None
    budget = requests.of(by_hand.connection.session.entity, 0)
    assert budget is not None
    assert budget.used(0) == 40 * MS
