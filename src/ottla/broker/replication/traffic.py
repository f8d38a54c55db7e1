"""What went through the partitions of a topic: plain integers, which the partitions add to and a scrape reads."""

from collections.abc import Iterator

from ottla.broker.storage.record_errors import InvalidRecords
from ottla.model.errors import ApiError, ErrorCode
from ottla.protocol.compression import Buffer
from ottla.protocol.records import BATCH_OVERHEAD, MAGIC, MAGIC_POSITION

_NOT_FAILURES = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.KAFKA_STORAGE_ERROR,
    }
)
"""As in Kafka: a client that went to the wrong place, or met a failed disk, did not fail here."""
_NOT_FAILED_APPENDS = _NOT_FAILURES | {
    ErrorCode.MESSAGE_TOO_LARGE,
    ErrorCode.RECORD_LIST_TOO_LARGE,
    ErrorCode.CORRUPT_MESSAGE,
}
_NOT_FAILED_READS = _NOT_FAILURES | {
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.FENCED_LEADER_EPOCH,
    ErrorCode.UNKNOWN_LEADER_EPOCH,
    ErrorCode.OFFSET_OUT_OF_RANGE,
    ErrorCode.REPLICA_NOT_AVAILABLE,
}
_TOO_LARGE = frozenset({ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE})


class TopicTraffic:
    """Since this broker started."""

    __slots__ = (
        "appends", "bytes_in", "bytes_out", "bytes_rejected", "conversions", "failed_appends", "failed_reads",
        "messages_in", "reads", "reassignment_bytes_in", "reassignment_bytes_out", "replication_bytes_in",
        "replication_bytes_out", "unfailed_refusals",
    )  # fmt: skip

    def __init__(self) -> None:
        self.appends = 0
        """Batches that were appended."""
        self.messages_in = 0
        self.bytes_in = 0
        self.bytes_out = 0
        self.bytes_rejected = 0
        self.reads = 0
        self.failed_appends = 0
        self.unfailed_refusals = 0
        """Batches that were refused and do not count as failed."""
        self.failed_reads = 0
        self.conversions = 0
        self.replication_bytes_in = 0
        self.replication_bytes_out = 0
        self.reassignment_bytes_in = 0
        self.reassignment_bytes_out = 0

    def add(self, other: "TopicTraffic") -> None:
        for name in TopicTraffic.__slots__:
            setattr(self, name, getattr(self, name) + getattr(other, name))

    def count_append(self, records: int, size: int) -> None:
        self.appends += 1
        self.messages_in += records
        self.bytes_in += size

    def append_refused(self, code: int, size: int) -> None:
        if code in _NOT_FAILED_APPENDS:
            self.unfailed_refusals += 1
            if code in _TOO_LARGE:
                self.bytes_rejected += size
        else:
            self.failed_appends += 1

    def read_refused(self, code: int) -> None:
        if code not in _NOT_FAILED_READS:
            self.failed_reads += 1


class InvalidBatches:
    """Why batches of clients were not taken, as Kafka tells the reasons apart; of all topics together."""

    __slots__ = ("crc", "keyless", "magic", "sequence")

    def __init__(self) -> None:
        self.magic = self.crc = self.sequence = self.keyless = 0

    def note(self, error: ApiError, records: Buffer) -> None:
        if error.code is ErrorCode.CORRUPT_MESSAGE:
            self.crc += 1
        elif error.code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER:
            self.sequence += 1
        elif error.code is ErrorCode.INVALID_RECORD:
            if isinstance(error, InvalidRecords):
                self.keyless += 1
            elif len(records) < BATCH_OVERHEAD or records[MAGIC_POSITION] != MAGIC:
                self.magic += 1
            else:
                self.sequence += 1


class Traffic:
    """Of all topics that this broker has, or had, replicas of."""

    def __init__(self) -> None:
        self._topics: dict[str, TopicTraffic] = {}
        self._gone = TopicTraffic()
        self.invalid = InvalidBatches()

    def of(self, topic: str) -> TopicTraffic:
        found = self._topics.get(topic)
        if found is None:
            found = self._topics[topic] = TopicTraffic()
        return found

    def find(self, topic: str) -> TopicTraffic | None:
        return self._topics.get(topic)

    def forget(self, topic: str) -> None:
        """The topic is gone. What went through it stays in the sum over all: that never becomes less."""
        gone = self._topics.pop(topic, None)
        if gone is not None:
            self._gone.add(gone)

    def items(self) -> Iterator[tuple[str, TopicTraffic]]:
        return iter(tuple(self._topics.items()))

    def total(self) -> TopicTraffic:
        total = TopicTraffic()
        total.add(self._gone)
        for each in self._topics.values():
            total.add(each)
        return total
