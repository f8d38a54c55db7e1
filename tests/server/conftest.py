"""A client that behaves, beside those that do not: whatever they do, it must not notice."""

from collections.abc import Callable, Iterator

import pytest

from ottla.model.errors import ErrorCode
from ottla.protocol.messages.fetch import FetchResponse
from ottla.protocol.records import decode_batch
from ottla.testing import RunningBroker
from ottla.testing.requests import FETCH_VERSION, create_topic, fetch_request, produce
from ottla.testing.wire import WireConnection


@pytest.fixture
def bystander(ottla_broker: RunningBroker, unique: Callable[[str], str]) -> Iterator[Callable[[], None]]:
    """Call it to see that a connection opened before still works, and that its data is what it wrote."""
    topic = unique("bystander")
    with WireConnection(ottla_broker.host, ottla_broker.port) as connection:
        assert create_topic(connection, topic) == ErrorCode.NONE
        written = 0

        def works() -> None:
            nonlocal written
            answer = produce(connection, topic, 0, [b"value %d" % written])
            assert (answer.error_code, answer.base_offset) == (ErrorCode.NONE, written)
            fetched = connection.call(fetch_request(topic, 0, written), FETCH_VERSION, FetchResponse)
            records = fetched.responses[0].partitions[0].records
            assert records is not None
            assert [record.value for record in decode_batch(bytes(records))] == [b"value %d" % written]
            written += 1

        works()
        yield works
        works()
        assert ottla_broker.running
