"""Tests of transactions run as soon as the broker says that it serves them."""

import warnings

import pytest

from ottla.protocol.apis import ApiKey
from ottla.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from ottla.testing import RunningBroker
from ottla.testing.wire import WireConnection

with warnings.catch_warnings():
    # kafka-python reads its schemas by a function that Python 3.11 has deprecated; its import is the only place.
    warnings.simplefilter("ignore", DeprecationWarning)
    import kafka  # noqa: F401


def serves(broker: RunningBroker, *keys: ApiKey) -> bool:
    """Whether the broker advertises all of these APIs."""
    request = ApiVersionsRequest(client_software_name="tests", client_software_version="1")
    with WireConnection(broker.host, broker.port) as connection:
        answer = connection.call(request, 3, ApiVersionsResponse)
    return set(keys) <= {each.api_key for each in answer.api_keys}


@pytest.fixture
def transactional_broker(ottla_broker: RunningBroker) -> RunningBroker:
    if not serves(ottla_broker, ApiKey.ADD_PARTITIONS_TO_TXN, ApiKey.END_TXN):
        pytest.skip("this broker does not advertise transactions")
    return ottla_broker
