"""What a cluster says when it is asked whether it takes batches as they are."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from ottla.client.errors import UnsupportedByBroker
from ottla.client.mirrored import TakesBatches, takes_batches
from ottla.model.errors import ErrorCode
from ottla.protocol.messages.append_mirrored import (
    AppendMirroredRequest,
    AppendMirroredResponse,
    MirroredPartitionResult,
    MirroredTopicResult,
)


class Asked:
    """A cluster with one answer."""

    def __init__(self, answer: ErrorCode | None) -> None:
        self._answer = answer

    async def retrying(self, attempt: Callable[[], Awaitable[Any]]) -> Any:
        return await attempt()

    async def call(self, request: AppendMirroredRequest, answer: type[AppendMirroredResponse]) -> Any:
        assert not request.topics[0].partitions[0].records
        if self._answer is None:
            raise UnsupportedByBroker("the broker does not serve AppendMirrored")
        return answer(topics=[MirroredTopicResult("", [MirroredPartitionResult(0, self._answer)])])


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        (None, TakesBatches.NOT_OTTLA),
        (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, TakesBatches.FORBIDDEN),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, TakesBatches.YES),
    ],
)
def test_who_takes_batches(answer: ErrorCode | None, found: TakesBatches) -> None:
    asked: Any = Asked(answer)
    assert asyncio.run(takes_batches(asked)) is found
