"""Messages recorded from Apache Kafka and its clients decode and encode back to the same bytes."""

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from ottla.model.errors import ErrorCode
from ottla.protocol import codec, frames
from ottla.protocol.apis import API, REQUEST_FLEXIBLE_FROM, ApiKey, ApiSpec, response_header_is_flexible
from ottla.protocol.messages.api_versions import ApiVersionsResponse
from ottla.protocol.messages.fetch import FetchResponse
from ottla.protocol.messages.produce import ProduceRequest
from ottla.protocol.records import check_crc, decode_batch, iterate_batches

FOLDER = Path(__file__).parent


class Golden(NamedTuple):
    spec: ApiSpec
    version: int
    source: str
    request: bytes
    response: bytes


def _load(name: str) -> Iterator[Golden]:
    spec = API[ApiKey[name.upper()]]
    for entry in json.loads((FOLDER / f"{name}.json").read_text()):
        request, response = base64.b64decode(entry["request"]), base64.b64decode(entry["response"])
        yield Golden(spec, entry["version"], entry["source"], request, response)


ALL = [golden for path in sorted(FOLDER.glob("*.json")) for golden in _load(path.stem)]
KNOWN = [golden for golden in ALL if golden.version <= golden.spec.max_version]


def _name(golden: Golden) -> str:
    return f"{golden.spec.name}-v{golden.version}-{golden.source}"


@pytest.mark.parametrize("golden", KNOWN, ids=_name)
def test_request_round_trip(golden: Golden) -> None:
    header = frames.read_request_header(golden.request, REQUEST_FLEXIBLE_FROM)
    assert (header.api_key, header.version) == (golden.spec.key, golden.version)

    message = codec.decode(golden.spec.request_class, golden.version, golden.request, header.body_start)

    assert bytes(codec.encode(message, golden.version)) == golden.request[header.body_start :]


@pytest.mark.parametrize("golden", KNOWN, ids=_name)
def test_request_frame_round_trip(golden: Golden) -> None:
    header = frames.read_request_header(golden.request, REQUEST_FLEXIBLE_FROM)

    frame = frames.request_frame(
        header.api_key, header.version, header.correlation_id, header.client_id, golden.request[header.body_start :],
        flexible=golden.version >= golden.spec.flexible_from,
    )  # fmt: skip

    assert frame == len(golden.request).to_bytes(4, "big") + golden.request


@pytest.mark.parametrize("golden", KNOWN, ids=_name)
def test_response_round_trip(golden: Golden) -> None:
    flexible = response_header_is_flexible(golden.spec.key, golden.version)
    correlation_id, start = frames.read_response_header(golden.response, flexible=flexible)
    assert correlation_id == frames.read_request_header(golden.request, REQUEST_FLEXIBLE_FROM).correlation_id

    message = codec.decode(golden.spec.response_class, golden.version, golden.response, start)

    body = bytes(codec.encode(message, golden.version))
    assert body == golden.response[start:]
    head = frames.response_head(correlation_id, len(body), flexible=flexible)
    assert head + body == len(golden.response).to_bytes(4, "big") + golden.response


def test_every_version_of_the_swept_apis_is_there() -> None:
    """A capture that lost some of its exchanges would make the tests above pass with less."""
    swept: dict[ApiKey, set[int]] = {}
    for golden in KNOWN:
        if golden.source == "sweep":
            swept.setdefault(golden.spec.key, set()).add(golden.version)

    assert len(swept) == 29
    for key, versions in swept.items():
        last = 5 if key == ApiKey.INIT_PRODUCER_ID else API[key].max_version
        assert versions == set(range(API[key].min_version, last + 1)), key.name


def test_an_unknown_version_of_api_versions_is_answered_in_version_0() -> None:
    (golden,) = [golden for golden in ALL if golden.version > golden.spec.max_version]
    assert golden.spec.key == ApiKey.API_VERSIONS

    message = codec.decode(ApiVersionsResponse, 0, golden.response, 4)

    assert message.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert [(each.api_key, each.min_version, each.max_version) for each in message.api_keys] == [(18, 0, 4)]
    assert bytes(codec.encode(message, 0)) == golden.response[4:]


def test_produced_batches_of_every_client_are_sound() -> None:
    sources = set()
    for golden in _load("produce"):
        start = frames.read_request_header(golden.request, REQUEST_FLEXIBLE_FROM).body_start
        request = codec.decode(ProduceRequest, golden.version, golden.request, start)
        batch = request.topic_data[0].partition_data[0].records
        assert batch is not None
        for position, header in iterate_batches(batch):
            check_crc(batch, position, header)
            assert len(decode_batch(batch, position)) == header.record_count
            sources.add(golden.source)

    assert sources == {"sweep", "librdkafka", "kafka-python", "aiokafka", "java"}


def test_fetched_batches_are_sound() -> None:
    batches = 0
    for golden in _load("fetch"):
        flexible = response_header_is_flexible(golden.spec.key, golden.version)
        _, start = frames.read_response_header(golden.response, flexible=flexible)
        response = codec.decode(FetchResponse, golden.version, golden.response, start)
        for topic in response.responses:
            for partition in topic.partitions:
                for position, header in iterate_batches(partition.records or b""):
                    assert partition.records is not None
                    check_crc(partition.records, position, header)
                    assert len(decode_batch(partition.records, position)) == header.record_count
                    batches += 1
    assert batches >= 15
