"""What becomes of each setting of Kafka's Java clients in ours, which ride on librdkafka.

Every name falls in exactly one table: SAME (librdkafka means the same by it), CONVERTED (another name or another
unit), DROPPED (it has no effect here, and leaving it out changes nothing a user can see), REFUSED (leaving it out would
change what happens, so the tool stops and says why). A name in none of them goes to librdkafka as it is: its own
settings may be used too, and it rejects what it does not know.
"""

from collections.abc import Callable, Mapping

from ottla.cli.common.output import CommandError
from ottla.client.settings import RENAMED

Converted = dict[str, str | int | bool]
Converter = Callable[[str, str], Converted]
"""(name, value) of a Java setting to librdkafka's settings."""

REFRESH_MS_MAX = 3_600_000
METADATA_AGE_MS_MAX = 86_400_000
SMALLEST_MESSAGE_MAX, DEFAULT_MESSAGE_MAX = 1000, 1_000_000  # of librdkafka's message.max.bytes
REFRESHES_PER_AGE = 3  # librdkafka forgets a topic after missing this many refreshes


def integer(name: str, value: str) -> int:
    try:
        return int(value)
    except ValueError:
        raise CommandError(f"{name} wants a whole number, not `{value}`") from None


def boolean(name: str, value: str) -> bool:
    lowered = value.strip().lower()
    if lowered not in ("true", "false"):
        raise CommandError(f"{name} is true or false, not `{value}`")
    return lowered == "true"


def renamed(to: str) -> Converter:
    return lambda _name, value: {to: value}


def at_least(to: str, minimum: int) -> Converter:
    """Java allows 0 or -1 where librdkafka's smallest value means the same."""
    return lambda name, value: {to: max(minimum, integer(name, value))}


def lower_case(to: str) -> Converter:
    return lambda _name, value: {to: value.strip().lower()}


def _metadata_max_age(name: str, value: str) -> Converted:
    age = max(1, integer(name, value))
    return {
        "topic.metadata.refresh.interval.ms": min(age, REFRESH_MS_MAX),
        "metadata.max.age.ms": min(age * REFRESHES_PER_AGE, METADATA_AGE_MS_MAX),
    }


def _buffer_memory(name: str, value: str) -> Converted:
    size = integer(name, value)
    if size < 0:
        raise CommandError(f"{name} cannot be negative: {size}")
    # Memory alone is the limit, as in Java: librdkafka's limit on the number of records is lifted.
    return {"queue.buffering.max.kbytes": max(1, size // 1024), "queue.buffering.max.messages": 0}


def _acks(name: str, value: str) -> Converted:
    if value not in ("all", "-1", "0", "1"):
        raise CommandError(f"{name} is all, -1, 0 or 1, not `{value}`")
    return {"acks": value}


_PARTITIONERS = {
    "": "murmur2_random",
    "org.apache.kafka.clients.producer.internals.DefaultPartitioner": "murmur2_random",
    "org.apache.kafka.clients.producer.UniformStickyPartitioner": "random",
}


def _partitioner(name: str, value: str) -> Converted:
    if value not in _PARTITIONERS:
        raise CommandError(
            f"{name}={value} is a Java class without a counterpart here; leave it out for Kafka's default "
            "(keys by murmur2, the rest spread), use librdkafka's `partitioner`, or give console-producer a function "
            "of your own as partitioner.class=module:function (docs/tools.md)"
        )
    return {"partitioner": _PARTITIONERS[value]}


def _ignore_keys(name: str, value: str) -> Converted:
    return {"partitioner": "random"} if boolean(name, value) else {}


_ASSIGNORS = {
    "range": "range",
    "rangeassignor": "range",
    "roundrobin": "roundrobin",
    "roundrobinassignor": "roundrobin",
    "cooperative-sticky": "cooperative-sticky",
    "cooperativestickyassignor": "cooperative-sticky",
}


def _assignment_strategy(name: str, value: str) -> Converted:
    names = [entry.strip() for entry in value.strip("[] ").split(",") if entry.strip()]
    chosen = []
    for entry in names:
        short = entry.rpartition(".")[2].lower()
        if short == "stickyassignor":
            raise CommandError(
                f"{name}: the eager StickyAssignor does not exist here; use "
                "org.apache.kafka.clients.consumer.CooperativeStickyAssignor"
            )
        if short not in _ASSIGNORS:
            known = "RangeAssignor, RoundRobinAssignor and CooperativeStickyAssignor"
            raise CommandError(f"{name}: there is no assignor `{entry}`; there are {known}")
        chosen.append(_ASSIGNORS[short])
    if "cooperative-sticky" in chosen and len(set(chosen)) > 1:
        # Java's default names both, to let a group move from one to the other while it runs; the first one rules.
        chosen = chosen[:1]
    return {"partition.assignment.strategy": ",".join(chosen)} if chosen else {}


def _fetch_max_bytes(name: str, value: str) -> Converted:
    size = max(SMALLEST_MESSAGE_MAX, integer(name, value))
    # librdkafka wants an answer to have room for its largest message; Java returns one larger record all the same.
    return {"fetch.max.bytes": size, "message.max.bytes": min(size, DEFAULT_MESSAGE_MAX)}


_OFFSET_RESETS = {"earliest": "earliest", "latest": "latest", "none": "error"}


def _auto_offset_reset(name: str, value: str) -> Converted:
    if value.lower() not in _OFFSET_RESETS:
        raise CommandError(f"{name} is earliest, latest or none, not `{value}`")
    return {"auto.offset.reset": _OFFSET_RESETS[value.lower()]}


# -- the clients before Kafka 0.9 --------------------------------------------------------------------------------------

OLD_NAMES = {
    "auto.commit.enable": "enable.auto.commit",
    "compression.codec": "compression.type",
    "fetch.message.max.bytes": "max.partition.fetch.bytes",
    "metadata.broker.list": "bootstrap.servers",
    "request.required.acks": "acks",
}
_OLD_VALUES = {"auto.offset.reset": {"smallest": "earliest", "largest": "latest"}}


def by_todays_names(properties: Mapping[str, str]) -> dict[str, str]:
    """What the old clients called otherwise and meant the same by. A setting given by both names is by the new one."""
    found: dict[str, str] = {}
    for name, value in properties.items():
        today = OLD_NAMES.get(name, name)
        if today == name or today not in properties:
            found[today] = _OLD_VALUES.get(today, {}).get(value.strip().lower(), value)
    return found


# -- both clients ------------------------------------------------------------------------------------------------------

COMMON_SAME = frozenset(
    {
        "bootstrap.servers", "client.dns.lookup", "client.id", "client.rack", "connections.max.idle.ms",
        "enable.metrics.push", "metadata.recovery.rebootstrap.trigger.ms", "metadata.recovery.strategy",
        "reconnect.backoff.max.ms", "reconnect.backoff.ms",
    }
)  # fmt: skip

COMMON_CONVERTED: dict[str, Converter] = {
    "metadata.max.age.ms": _metadata_max_age,
    "receive.buffer.bytes": at_least("socket.receive.buffer.bytes", 0),
    "retry.backoff.max.ms": at_least("retry.backoff.max.ms", 1),
    "retry.backoff.ms": at_least("retry.backoff.ms", 1),
    "send.buffer.bytes": at_least("socket.send.buffer.bytes", 0),
    "socket.connection.setup.timeout.ms": at_least("socket.connection.setup.timeout.ms", 1000),
}

COMMON_DROPPED = {
    "auto.include.jmx.reporter": "there is no JMX outside the JVM",
    "metric.reporters": "these are Java classes; --print-metrics prints the client's figures",
    "metrics.num.samples": "it shapes the Java client's own metrics",
    "metrics.recording.level": "it shapes the Java client's own metrics",
    "metrics.sample.window.ms": "it shapes the Java client's own metrics",
    "socket.connection.setup.timeout.max.ms": "connection attempts all have the same timeout here, it does not grow",
}

COMMON_REFUSED = {
    **{name: what for name, what in RENAMED.items() if name not in OLD_NAMES},
    "config.providers": "values are taken as they are; write the value itself or read it from another file",
    "interceptor.classes": "interceptors are Java classes",
    "security.providers": "security providers are Java classes",
}

# -- producers ---------------------------------------------------------------------------------------------------------

PRODUCER_SAME = frozenset(
    {
        "compression.type", "delivery.timeout.ms", "enable.idempotence", "linger.ms",
        "max.in.flight.requests.per.connection", "retries",
    }
)  # fmt: skip

PRODUCER_CONVERTED: dict[str, Converter] = {
    "acks": _acks,
    "batch.size": at_least("batch.size", 1),
    "buffer.memory": _buffer_memory,
    "max.request.size": at_least("message.max.bytes", 1000),
    "partitioner.class": _partitioner,
    "partitioner.ignore.keys": _ignore_keys,
}

PRODUCER_DROPPED = {
    "key.serializer": "the tools send bytes",
    "metadata.max.idle.ms": "the tools write to one topic and need its metadata to the end",
    "partitioner.adaptive.partitioning.enable": "records without a key are spread evenly, whatever a broker's speed",
    "partitioner.availability.timeout.ms": "records without a key are spread evenly, whatever a broker's speed",
    "value.serializer": "the tools send bytes",
}

PRODUCER_REFUSED = {
    "transactional.id": "this tool does not write in transactions; producer-perf-test does",
    "transaction.timeout.ms": "this tool does not write in transactions; producer-perf-test does",
    "transaction.two.phase.commit.enable": "two-phase commit is not served",
}

# -- consumers ---------------------------------------------------------------------------------------------------------

CONSUMER_SAME = frozenset(
    {
        "allow.auto.create.topics", "auto.commit.interval.ms", "check.crcs", "enable.auto.commit", "fetch.min.bytes",
        "group.id", "group.instance.id", "group.remote.assignor", "heartbeat.interval.ms",
        "isolation.level", "max.partition.fetch.bytes", "max.poll.interval.ms", "session.timeout.ms",
    }
)  # fmt: skip

CONSUMER_CONVERTED: dict[str, Converter] = {
    "auto.offset.reset": _auto_offset_reset,
    "fetch.max.bytes": _fetch_max_bytes,
    "fetch.max.wait.ms": renamed("fetch.wait.max.ms"),
    "group.protocol": lower_case("group.protocol"),
    "partition.assignment.strategy": _assignment_strategy,
}

CONSUMER_DROPPED = {
    "key.deserializer": "the tools read bytes; --formatter-property key.deserializer=... says how to print keys",
    "value.deserializer": "the tools read bytes; --formatter-property value.deserializer=... says how to print values",
}

CONSUMER_REFUSED = {
    "share.acknowledgement.mode": "share groups are not served yet",
    "share.acquire.mode": "share groups are not served yet",
}
