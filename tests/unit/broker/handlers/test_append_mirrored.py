"""Batches of another cluster, appended as they are: what is taken, what is skipped, what is refused."""

import random
from collections.abc import Callable
from typing import Any

import pytest
from tests.unit.broker.handlers.conftest import Harness
from tests.unit.broker.handlers.partition_requests import TOPIC, batch, create_topic, produce_now

from ottla.broker.replication.partition import Partition
from ottla.broker.storage.markers import Marker, encode_marker
from ottla.model.errors import ErrorCode
from ottla.protocol.apis import ApiKey
from ottla.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from ottla.protocol.messages.append_mirrored import (
    AppendMirroredRequest,
    AppendMirroredResponse,
    MirroredPartition,
    MirroredPartitionResult,
    MirroredTopic,
)
from ottla.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from ottla.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from ottla.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from ottla.protocol.records import (
    ATTRIBUTES_POSITION,
    BATCH_OVERHEAD,
    MAGIC_POSITION,
    NewRecord,
    encode_batch,
    iterate_batches,
)

SOURCE = "east/topic-1"
TOPIC_RESOURCE = 2
SET, DELETE = 0, 1


def source_batch(base: int, count: int = 1, **fields: Any) -> bytearray:
    """As a source with leader epoch 9 has it."""
    return encode_batch(
        [NewRecord(b"k", b"v%d" % (base + number), 1_000) for number in range(count)],
        base_offset=base, **{"leader_epoch": 9} | fields,
    )  # fmt: skip


def set_source(harness: Harness, value: str | None) -> None:
    config = AlterableConfig("mirror.source", SET if value else DELETE, value)
    request = IncrementalAlterConfigsRequest([AlterConfigsResource(TOPIC_RESOURCE, TOPIC, [config])])
    response = harness.call(request, IncrementalAlterConfigsResponse, 1)
    assert [answer.error_code for answer in response.responses] == [0]


@pytest.fixture
def mirror(harness: Harness) -> Partition:
    (partition,) = create_topic(harness, 1)
    set_source(harness, SOURCE)
    return partition


def send(
    harness: Harness, *batches: bytearray, at: int, start: int = -1, source: str = SOURCE
) -> MirroredPartitionResult:
    records = bytearray(b"".join(batches)) if batches else None
    topic = MirroredTopic(TOPIC, source, [MirroredPartition(0, at, start, records)])
    answer = harness.call(AppendMirroredRequest(1_000, [topic]), AppendMirroredResponse, 0)
    return answer.topics[0].partitions[0]


def stored(partition: Partition) -> list[tuple[int, int]]:
    log = partition.log
    raw = partition.read(log.start_offset, 1 << 20, min_one_batch=True).read()
    return [(header.base_offset, header.last_offset) for _, header in iterate_batches(raw)]


def test_batches_keep_offsets_gaps_and_checksums_and_get_the_leaders_epoch(harness: Harness, mirror: Partition) -> None:
    first, second = source_batch(0, 3), source_batch(10, 2, producer_id=4, producer_epoch=0, base_sequence=0)
    answer = send(harness, first, second, at=0)
    assert (answer.error_code, answer.log_start_offset, answer.log_end_offset) == (0, 0, 12)
    raw = bytes(mirror.read(0, 1 << 20, min_one_batch=True).read())
    found = [header for _, header in iterate_batches(raw)]
    assert [header.leader_epoch for header in found] == [mirror.leader_epoch] * 2
    assert mirror.leader_epoch < 9
    before = [bytes(each[16:]) for each in (first, second)]
    assert [raw[16 : len(first)], raw[len(first) + 16 :]] == before


def test_what_comes_again_is_known_by_its_offsets(harness: Harness, mirror: Partition) -> None:
    send(harness, source_batch(0, 3), at=0)
    answer = send(harness, source_batch(0, 3), source_batch(3, 2), at=0)
    assert (answer.error_code, answer.log_end_offset) == (0, 5)
    assert stored(mirror) == [(0, 2), (3, 4)]
    assert send(harness, source_batch(3, 2), at=3).log_end_offset == 5


def test_a_gap_that_nobody_answers_for_is_refused_and_told_where_to_go_on(harness: Harness, mirror: Partition) -> None:
    send(harness, source_batch(0, 3), at=0)
    answer = send(harness, source_batch(8), at=8)
    assert (answer.error_code, answer.log_end_offset) == (ErrorCode.OFFSET_OUT_OF_RANGE, 3)
    assert stored(mirror) == [(0, 2)]


def test_a_log_begins_where_the_sources_does(harness: Harness, mirror: Partition) -> None:
    answer = send(harness, at=500, start=500)
    assert (answer.error_code, answer.log_start_offset, answer.log_end_offset) == (0, 500, 500)
    send(harness, source_batch(500, 5), source_batch(505, 5), at=500, start=500)
    answer = send(harness, at=510, start=505)
    assert (answer.log_start_offset, answer.log_end_offset) == (505, 510)
    # The source has dropped more than was copied: everything goes.
    answer = send(harness, source_batch(901), at=900, start=900)
    assert (answer.error_code, answer.log_start_offset, answer.log_end_offset) == (0, 900, 902)


def test_a_log_begins_inside_of_a_batch_where_the_sources_does(harness: Harness, mirror: Partition) -> None:
    send(harness, at=505, start=505)  # known before there was a record
    answer = send(harness, source_batch(500, 10), at=500, start=505)
    assert (answer.error_code, answer.log_start_offset, answer.log_end_offset) == (0, 505, 510)


def test_a_batch_across_the_end_of_the_log_is_refused(harness: Harness, mirror: Partition) -> None:
    send(harness, source_batch(0, 3), at=0)
    assert send(harness, source_batch(1, 5), at=1).error_code == ErrorCode.INVALID_RECORD
    assert stored(mirror) == [(0, 2)]


@pytest.mark.parametrize("source", ["", "east/topic-2", f"promoting:{SOURCE}"])
def test_another_source_is_refused(harness: Harness, mirror: Partition, source: str) -> None:
    set_source(harness, source or None)
    answer = send(harness, source_batch(0), at=0)
    assert answer.error_code == ErrorCode.POLICY_VIOLATION
    assert mirror.log.end_offset == 0


def test_an_ordinary_topic_is_not_written_to_by_naming_no_source(harness: Harness) -> None:
    (partition,) = create_topic(harness, 1)
    assert send(harness, source_batch(0), at=0, source="").error_code == ErrorCode.POLICY_VIOLATION
    assert partition.log.end_offset == 0


@pytest.mark.parametrize("transactional", [False, True])
def test_producers_are_refused_until_it_is_promoted(harness: Harness, mirror: Partition, transactional: bool) -> None:
    def produce() -> int:
        return produce_now(harness, {0: batch(-1, -1, epoch=-1, transactional=False)}, 12)[0].error_code

    if transactional:  # and the coordinator is not even asked: its marker would be a record
        refused = produce_now(harness, {0: batch(7, 0)}, 12)[0]
        assert refused.error_code == ErrorCode.POLICY_VIOLATION
        assert "promote" in (refused.error_message or "")
    assert produce() == ErrorCode.POLICY_VIOLATION
    assert mirror.log.end_offset == 0
    set_source(harness, None)
    assert produce() == ErrorCode.NONE


def test_markers_of_this_cluster_are_no_records_of_a_mirror(harness: Harness, mirror: Partition) -> None:
    send(harness, source_batch(0), at=0)
    assert write_abort(harness, 7) == ErrorCode.NONE
    assert mirror.log.end_offset == 1


def write_abort(harness: Harness, producer_id: int) -> int:
    marker = WritableTxnMarker(producer_id, 0, False, [WritableTxnMarkerTopic(TOPIC, [0])], 0)
    answer = harness.call(WriteTxnMarkersRequest([marker]), WriteTxnMarkersResponse, 1)
    return answer.markers[0].topics[0].partitions[0].error_code


def transactional(base: int, producer_id: int, sequence: int = 0) -> bytearray:
    return source_batch(base, producer_id=producer_id, producer_epoch=0, base_sequence=sequence, transactional=True)


def marker(base: int, producer_id: int, *, commit: bool) -> bytearray:
    made = encode_marker(producer_id, 0, Marker(commit, 0), 1_000)
    made[:8] = base.to_bytes(8, "big")
    return made


def test_transactions_arrive_with_their_markers_and_open_ones_are_ended_by_promoting(
    harness: Harness, mirror: Partition
) -> None:
    send(harness, transactional(0, 3), marker(1, 3, commit=False), transactional(2, 3, 1), at=0)
    assert (mirror.last_stable_offset, mirror.log.end_offset) == (2, 3)
    _, aborted = mirror.read_committed(0, 1 << 20, min_one_batch=True)
    assert [(each.producer_id, each.first_offset) for each in aborted] == [(3, 0)]
    set_source(harness, f"promoting:{SOURCE}")
    assert write_abort(harness, 3) == ErrorCode.NONE
    assert (mirror.last_stable_offset, mirror.log.end_offset) == (4, 4)


def test_the_producer_id_trap(harness: Harness, mirror: Partition) -> None:
    """Both clusters count producer ids from 0: a new producer must be none that the records bear, nor look like it."""
    for number in range(3):
        sent = source_batch(number, producer_id=number, producer_epoch=0, base_sequence=0)
        assert send(harness, sent, at=number).error_code == 0
    set_source(harness, None)
    given = harness.call(InitProducerIdRequest(None, 1_000), InitProducerIdResponse, 4)
    assert given.producer_id > 2
    # One that this cluster had given out before the mirror began: its first batch is not taken for a retry.
    answer = produce_now(harness, {0: batch(1, 0, transactional=False)}, 12)[0]
    assert (answer.error_code, answer.base_offset) == (0, 3)
    again = produce_now(harness, {0: batch(1, 0, transactional=False)}, 12)[0]
    assert (again.error_code, again.base_offset, mirror.log.end_offset) == (0, 3, 4)


def test_ids_of_mirrored_records_are_never_given_out_not_even_of_a_block_taken_before(
    harness: Harness, mirror: Partition
) -> None:
    first = harness.call(InitProducerIdRequest(None, 1_000), InitProducerIdResponse, 4).producer_id
    send(harness, source_batch(0, producer_id=first + 1, producer_epoch=0, base_sequence=0), at=0)
    next_id = harness.call(InitProducerIdRequest(None, 1_000), InitProducerIdResponse, 4).producer_id
    assert next_id > first + 1
    send(harness, source_batch(1, producer_id=5_000, producer_epoch=0, base_sequence=0), at=1)
    assert harness.call(InitProducerIdRequest(None, 1_000), InitProducerIdResponse, 4).producer_id > 5_000


def _flipped(at: int) -> Callable[[], bytearray]:
    def make() -> bytearray:
        made = source_batch(0, 2)
        made[at] ^= 0x41
        return made

    return make


def _sealed(**fields: Any) -> Callable[[], bytearray]:
    return lambda: source_batch(**{"base": 0, "count": 2} | fields)


HOSTILE: dict[str, Callable[[], bytearray]] = {
    "magic": _flipped(MAGIC_POSITION),
    "length": _flipped(8),
    "checksum": _flipped(18),
    "attributes": _flipped(ATTRIBUTES_POSITION),
    "payload": _flipped(BATCH_OVERHEAD + 3),
    "cut short": lambda: source_batch(0, 2)[:-1],
    "only a header": lambda: source_batch(0, 2)[: BATCH_OVERHEAD - 1],
    "bytes behind it": lambda: source_batch(0, 2) + b"\0" * 5,
    "going back": lambda: source_batch(5) + source_batch(5),
    "before the beginning": _sealed(base=-7),
    "beyond all offsets": _sealed(base=2**63 - 1),
    "an id that leaves none to give out": _sealed(producer_id=2**62 + 1, producer_epoch=0, base_sequence=0),
    "an id below none": _sealed(producer_id=-2, producer_epoch=0, base_sequence=0),
    "zeros": lambda: bytearray(200),
}


@pytest.mark.parametrize("make", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_bytes_change_nothing(harness: Harness, mirror: Partition, make: Callable[[], bytearray]) -> None:
    assert send(harness, source_batch(0), source_batch(1), at=0).error_code == 0
    refused = send(harness, make(), at=2)
    assert refused.error_code != ErrorCode.NONE
    assert refused.error_message
    assert stored(mirror) == [(0, 0), (1, 1)]
    assert harness.broker.controller.mirrored_ids == -1
    assert send(harness, source_batch(2), at=2).log_end_offset == 3


def test_garbage_of_any_kind_leaves_the_log_as_it_was(harness: Harness, mirror: Partition) -> None:
    chance = random.Random(17)
    for _ in range(200):
        made = source_batch(0, 3)
        for at in chance.sample([*range(8, 12), *range(16, len(made))], chance.randint(1, 4)):  # all but the epoch
            made[at] ^= chance.randint(1, 255)
        assert send(harness, made, at=0).error_code != ErrorCode.NONE
        assert mirror.log.end_offset == 0


def test_internal_topics_and_strange_offsets(harness: Harness, mirror: Partition) -> None:
    assert send(harness, at=-1).error_code == ErrorCode.INVALID_REQUEST
    topic = MirroredTopic("__consumer_offsets", SOURCE, [MirroredPartition(0, 0, -1, source_batch(0))])
    answer = harness.call(AppendMirroredRequest(1_000, [topic]), AppendMirroredResponse, 0)
    assert answer.topics[0].partitions[0].error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
    missing = MirroredTopic("missing", SOURCE, [MirroredPartition(0, 0, -1, source_batch(0))])
    answer = harness.call(AppendMirroredRequest(1_000, [missing]), AppendMirroredResponse, 0)
    assert answer.topics[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_only_ottlas_own_client_is_told_of_it(harness: Harness) -> None:
    def told(name: str) -> bool:
        asked = ApiVersionsRequest(client_software_name=name, client_software_version="1")
        answer = harness.call(asked, ApiVersionsResponse, 4)
        return ApiKey.APPEND_MIRRORED in {api.api_key for api in answer.api_keys}

    assert told("ottla")
    assert not told("apache-kafka-java")


def test_producers_read_from_a_mirrors_log_again_are_still_another_clusters(
    harness: Harness, mirror: Partition
) -> None:
    for number in range(2):
        send(harness, source_batch(number, producer_id=1, producer_epoch=0, base_sequence=number), at=number)
    mirror.truncate_to(1)
    assert not mirror.log.producers.entries
    send(harness, transactional(1, 1, 1), at=1)
    assert mirror.log.producers.open_transaction(1) == 1
    mirror.truncate_to(1)
    assert mirror.log.producers.open_transaction(1) is None
