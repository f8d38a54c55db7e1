"""The SQLite store: versions, all or nothing, and nothing acknowledged is ever lost."""

import asyncio
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from ottla.cluster.documents import (
    PRODUCER_IDS_PATH,
    ProducerIdBlock,
    broker_config_path,
    config_document,
    partition_document,
    partition_path,
    producer_ids_document,
    topic_document,
    topic_path,
)
from ottla.cluster.embedded import FILE_NAME, EmbeddedStore
from ottla.cluster.image import BrokerImage, Endpoint, ImageChange, PartitionImage
from ottla.cluster.store import ABSENT, StoreError, VersionConflict, Write
from ottla.model.errors import ErrorCode, OttlaError

PARTITION = PartitionImage(leader=1, leader_epoch=0, replicas=(1,), isr=(1,))


def creation(name: str, partitions: int = 1) -> list[Write]:
    states = (PARTITION,) * partitions
    writes = [Write(topic_path(name), topic_document(uuid.uuid4(), states), ABSENT)]
    writes += [Write(partition_path(name, n), partition_document(p), ABSENT) for n, p in enumerate(states)]
    return writes


@pytest.fixture
def store(tmp_path: Path) -> Iterator[EmbeddedStore]:
    opened = EmbeddedStore.open(tmp_path / "data")
    yield opened
    asyncio.run(opened.close())


def test_a_change_is_in_the_image_and_there_after_reopening(store: EmbeddedStore, tmp_path: Path) -> None:
    seen: list[ImageChange] = []
    unsubscribe = store.subscribe(seen.append)
    before = store.image
    asyncio.run(store.commit(creation("a", 3)))
    assert [(change.old is before, change.new is store.image) for change in seen] == [(True, True)]
    unsubscribe()
    block = producer_ids_document(ProducerIdBlock(1, 0, 999))
    asyncio.run(store.commit([Write(PRODUCER_IDS_PATH, block, ABSENT)]))
    assert len(seen) == 1
    image = store.image
    asyncio.run(store.close())
    again = EmbeddedStore.open(tmp_path / "data")
    assert again.image == image
    assert len(again.image.topics["a"].partitions) == 3
    document = again.read(PRODUCER_IDS_PATH)
    assert document is not None
    assert document.data == block
    assert again.version(topic_path("a")) == 0
    asyncio.run(again.close())


def test_the_cluster_id_is_made_once(store: EmbeddedStore, tmp_path: Path) -> None:
    cluster_id = store.image.cluster_id
    asyncio.run(store.close())
    again = EmbeddedStore.open(tmp_path / "data")
    assert len(cluster_id) == 22
    assert again.image.cluster_id == cluster_id
    asyncio.run(again.close())


def test_versions_guard_every_document(store: EmbeddedStore) -> None:
    path = broker_config_path("1")
    asyncio.run(store.commit([Write(path, config_document({"x": "1"}), ABSENT)]))
    asyncio.run(store.commit([Write(path, config_document({"x": "2"}), 0)]))
    with pytest.raises(VersionConflict, match="version 1, not 0"):
        asyncio.run(store.commit([*creation("a"), Write(path, config_document({"x": "3"}), 0)]))
    assert "a" not in store.image.topics
    assert store.image.broker_configs["1"] == {"x": "2"}
    with pytest.raises(VersionConflict):
        asyncio.run(store.commit([Write(path, None, ABSENT)]))
    asyncio.run(store.commit([Write(path, None, 1)]))
    assert store.version(path) == ABSENT
    assert "1" not in store.image.broker_configs


def test_of_two_that_want_the_same_document_one_wins(store: EmbeddedStore) -> None:
    async def race() -> list[BaseException | None]:
        both = (store.commit(creation("a")), store.commit(creation("a")))
        return list(await asyncio.gather(*both, return_exceptions=True))

    results = asyncio.run(race())
    assert [type(result) for result in results] == [type(None), VersionConflict]


def test_a_caller_that_goes_away_leaves_file_and_image_in_step(store: EmbeddedStore, tmp_path: Path) -> None:
    async def begin_and_leave() -> None:
        task = asyncio.create_task(store.commit(creation("a")))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await store.commit(creation("b"))

    asyncio.run(begin_and_leave())
    assert set(store.image.topics) == {"a", "b"}
    asyncio.run(store.close())
    again = EmbeddedStore.open(tmp_path / "data")
    assert set(again.image.topics) == {"a", "b"}
    asyncio.run(again.close())


def test_a_full_disk_refuses_the_change_and_harms_nothing(store: EmbeddedStore, tmp_path: Path) -> None:
    asyncio.run(store.commit(creation("before")))
    # SQLite's own limit stands in for the disk's: both end in the same error at the same place.
    (pages,) = store._connection.execute("PRAGMA page_count").fetchone()
    store._connection.execute(f"PRAGMA max_page_count={pages + 1}")
    image = store.image
    with pytest.raises(StoreError) as caught:
        asyncio.run(store.commit(creation("big", 2000)))
    assert caught.value.code == ErrorCode.KAFKA_STORAGE_ERROR
    assert caught.value.code.retriable
    assert store.image is image
    store._connection.execute("PRAGMA max_page_count=100000")
    asyncio.run(store.commit(creation("big", 2000)))
    asyncio.run(store.close())
    again = EmbeddedStore.open(tmp_path / "data")
    assert {name: len(topic.partitions) for name, topic in again.image.topics.items()} == {"before": 1, "big": 2000}
    asyncio.run(again.close())


def test_a_running_broker_is_known_but_not_written_down(store: EmbeddedStore, tmp_path: Path) -> None:
    broker = BrokerImage(7, "rack", (Endpoint("PLAINTEXT", "h", 9092),))
    asyncio.run(store.register_broker(broker))
    assert (store.image.brokers, store.image.controller_id) == ({7: replace(broker, epoch=1)}, 7)
    asyncio.run(store.close())
    again = EmbeddedStore.open(tmp_path / "data")
    assert not again.image.brokers
    asyncio.run(again.close())


def test_a_second_broker_on_the_same_directory_is_turned_away(store: EmbeddedStore, tmp_path: Path) -> None:
    assert store.image.cluster_id
    with pytest.raises(OttlaError, match="another broker is using it"):
        EmbeddedStore.open(tmp_path / "data")


def test_a_file_that_is_not_ours_is_refused_in_words(tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).write_bytes(b"garbage" * 1000)
    with pytest.raises(OttlaError, match="cannot be read"):
        EmbeddedStore.open(tmp_path)


COMMIT_FOR_EVER = """
import asyncio, itertools, sys, uuid
from ottla.cluster.documents import partition_document, partition_path, topic_document, topic_path
from ottla.cluster.embedded import EmbeddedStore
from ottla.cluster.image import PartitionImage
from ottla.cluster.store import ABSENT, Write

async def main():
    store = EmbeddedStore.open(sys.argv[1])
    partition = PartitionImage(1, 0, (1,), (1,))
    for number in itertools.count():
        name = f"{sys.argv[2]}-{number}"
        await store.commit([
            Write(topic_path(name), topic_document(uuid.uuid4(), [partition] * 5), ABSENT),
            *(Write(partition_path(name, n), partition_document(partition), ABSENT) for n in range(5)),
        ])
        print(name, flush=True)

asyncio.run(main())
"""


def test_what_was_acknowledged_survives_kill_9(tmp_path: Path) -> None:
    acknowledged: list[str] = []
    for round_number in range(3):
        with subprocess.Popen(
            [sys.executable, "-c", COMMIT_FOR_EVER, str(tmp_path), f"round{round_number}"],
            stdout=subprocess.PIPE,
            text=True,
        ) as process:
            assert process.stdout is not None
            for _ in range(40):
                acknowledged.append(process.stdout.readline().strip())
            process.send_signal(signal.SIGKILL)
            acknowledged += [line.strip() for line in process.stdout if line.endswith("\n")]
        store = EmbeddedStore.open(tmp_path)
        topics = store.image.topics
        asyncio.run(store.close())
        assert set(acknowledged) <= set(topics)
        # Whatever came through did so as a whole.
        assert all(len(t.partitions) == 5 and all(p.leader == 1 for p in t.partitions) for t in topics.values())
