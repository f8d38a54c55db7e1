"""Traffic by topic, as metrics."""

from collections.abc import Iterator

from ottla.broker.replication.traffic import TopicTraffic, Traffic
from ottla.telemetry.declared import topics
from ottla.telemetry.metric import Row
from ottla.telemetry.registry import Telemetry

METRICS = (
    topics.MESSAGES_IN,
    topics.BYTES_IN,
    topics.BYTES_OUT,
    topics.BYTES_REJECTED,
    topics.REPLICATION_BYTES_IN,
    topics.REPLICATION_BYTES_OUT,
    topics.REASSIGNMENT_BYTES_IN,
    topics.REASSIGNMENT_BYTES_OUT,
    topics.PRODUCE_REQUESTS,
    topics.FETCH_REQUESTS,
    topics.FAILED_PRODUCE_REQUESTS,
    topics.FAILED_FETCH_REQUESTS,
    topics.PRODUCE_CONVERSIONS,
)
_INVALID = (topics.INVALID_MAGIC, topics.INVALID_CRC, topics.INVALID_SEQUENCE, topics.NO_KEY)


def show(telemetry: Telemetry, traffic: Traffic) -> None:
    def read() -> Iterator[Row]:
        for name, each in traffic.items():
            yield (name,), values_of(each)

    def read_invalid() -> Iterator[Row]:
        invalid = traffic.invalid
        yield (), (invalid.magic, invalid.crc, invalid.sequence, invalid.keyless)

    telemetry.observe_together(METRICS, read)
    telemetry.observe_together(_INVALID, read_invalid)


def values_of(traffic: TopicTraffic) -> tuple[int, ...]:
    """In the order of `METRICS`."""
    return (
        traffic.messages_in,
        traffic.bytes_in,
        traffic.bytes_out,
        traffic.bytes_rejected,
        traffic.replication_bytes_in,
        traffic.replication_bytes_out,
        traffic.reassignment_bytes_in,
        traffic.reassignment_bytes_out,
        traffic.appends + traffic.failed_appends + traffic.unfailed_refusals,
        traffic.reads,
        traffic.failed_appends,
        traffic.failed_reads,
        traffic.conversions,
    )
