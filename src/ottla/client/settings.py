"""Client settings, by the names of Java's client and librdkafka: what takes effect, and why the rest cannot.

A setting that would be ignored is refused: whoever wrote it believes that it does something.
"""

from collections.abc import Collection, Mapping
from typing import NamedTuple

from ottla.client.cluster import TOTAL_TIMEOUT_S, Cluster, parse_bootstrap
from ottla.client.connection import CONNECT_TIMEOUT_S, REQUEST_TIMEOUT_S
from ottla.client.errors import InvalidSetting
from ottla.client.fetch import FETCH_BYTES_MAX, PARTITION_BYTES_MAX, WAIT_MS_MAX, FetchSettings
from ottla.client.security import PLAINTEXT, SECURITY_SETTINGS, Security, parse_security
from ottla.config.guessing import nearest

INT32_MAX = 2**31 - 1

CLIENT_SETTINGS = frozenset(
    {
        "bootstrap.servers", "client.id", "default.api.timeout.ms", "request.timeout.ms",
        "socket.connection.setup.timeout.ms",
    }
)  # fmt: skip
CONSUMER_SETTINGS = frozenset(
    {
        "check.crcs", "client.rack", "fetch.max.bytes", "fetch.max.wait.ms", "fetch.min.bytes", "fetch.wait.max.ms",
        "group.id", "isolation.level", "max.partition.fetch.bytes",
    }
)  # fmt: skip

_NO_MEMBER = "a query is no member of its group: Spark hands out the partitions"
_NO_CLASSES = "it names a Java class, and no JVM reads the records"
_ONE_BUFFER = "requests are limited by fetch.max.bytes and max.partition.fetch.bytes alone"
_BACKOFF = "retries wait 50 ms at first and 1 s at most, for as long as default.api.timeout.ms allows"
_METADATA = "metadata is asked for when it is needed, not kept"
WITHOUT_EFFECT: Mapping[str, str] = {
    "allow.auto.create.topics": "reading never makes a topic",
    "auto.commit.interval.ms": _NO_MEMBER,
    "auto.include.jmx.reporter": "there is no JVM here",
    "connections.max.idle.ms": "idle connections are kept until the broker closes them",
    "enable.metrics.push": "these clients push no metrics",
    "exclude.internal.topics": "internal topics are read only where they are named",
    "fetch.message.max.bytes": "librdkafka's other name; write max.partition.fetch.bytes",
    "group.instance.id": _NO_MEMBER,
    "group.protocol": _NO_MEMBER,
    "group.remote.assignor": _NO_MEMBER,
    "heartbeat.interval.ms": _NO_MEMBER,
    "interceptor.classes": _NO_CLASSES,
    "max.poll.interval.ms": _NO_MEMBER,
    "max.poll.records": "rows go to Spark in Arrow batches; maxOffsetsPerTrigger limits a micro-batch",
    "metadata.max.age.ms": _METADATA,
    "metadata.recovery.strategy": "the bootstrap servers are always tried again",
    "metric.reporters": _NO_CLASSES,
    "metrics.num.samples": "these clients keep no metrics",
    "metrics.recording.level": "these clients keep no metrics",
    "metrics.sample.window.ms": "these clients keep no metrics",
    "partition.assignment.strategy": _NO_MEMBER,
    "queued.max.messages.kbytes": _ONE_BUFFER,
    "queued.min.messages": _ONE_BUFFER,
    "receive.buffer.bytes": "the system sizes its socket buffers itself",
    "reconnect.backoff.max.ms": _BACKOFF,
    "reconnect.backoff.ms": _BACKOFF,
    "retry.backoff.max.ms": _BACKOFF,
    "retry.backoff.ms": _BACKOFF,
    "security.providers": _NO_CLASSES,
    "send.buffer.bytes": "the system sizes its socket buffers itself",
    "session.timeout.ms": _NO_MEMBER,
    "socket.connection.setup.timeout.max.ms": "every attempt has socket.connection.setup.timeout.ms",
    "client.dns.lookup": "every address that a name resolves to is tried",
}

RENAMED: Mapping[str, str] = {
    "auto.commit.enable": "use enable.auto.commit",
    "block.on.buffer.full": "use max.block.ms, which says how long a full buffer is waited for",
    "fetch.wait.ms": "use fetch.max.wait.ms",
    "heatbeat.interval.ms": "use heartbeat.interval.ms",
    "in.flight.requests.per.session": "use max.in.flight.requests.per.connection",
    "max.poll.interval.max": "use max.poll.interval.ms",
    "max.message.size": "use max.request.size",
    "metadata.broker.list": "use bootstrap.servers",
    "metadata.fetch.timeout.ms": "use max.block.ms, which bounds the wait for metadata",
    "offsets.storage": "offsets are kept by the brokers; take it out",
    "dual.commit.enabled": "offsets are kept by the brokers; take it out",
    "producer.type": "every producer sends in the background, and linger.ms says how long it gathers; take it out",
    "request.required.acks": "use acks",
    "timeout.ms": "use delivery.timeout.ms, which bounds a whole send with its retries; request.timeout.ms bounds one "
    "request",
    "zk.connect": "clients talk to brokers and not to ZooKeeper: use bootstrap.servers",
    "zookeeper.connect": "clients talk to brokers and not to ZooKeeper: use bootstrap.servers",
    "zookeeper.session.timeout.ms": "clients talk to brokers and not to ZooKeeper; use session.timeout.ms",
    "zookeeper.connection.timeout.ms": "clients talk to brokers and not to ZooKeeper; take it out",
}
"""Names that Kafka's clients had once, or that books have, and what does it today."""


class ClientSettings(NamedTuple):
    """What every connection needs."""

    bootstrap: str
    client_id: str = "ottla"
    request_timeout_s: float = REQUEST_TIMEOUT_S
    total_timeout_s: float = TOTAL_TIMEOUT_S
    connect_timeout_s: float = CONNECT_TIMEOUT_S
    security: Security = PLAINTEXT

    def cluster(self, *, patience_s: float = 0.0) -> Cluster:
        return Cluster(
            self.bootstrap,
            client_id=self.client_id,
            request_timeout_s=self.request_timeout_s,
            total_timeout_s=self.total_timeout_s,
            connect_timeout_s=self.connect_timeout_s,
            security=self.security,
            patience_s=patience_s,
        )


class ConsumerSettings(NamedTuple):
    client: ClientSettings
    fetch: FetchSettings
    check_crcs: bool
    group_id: str | None


def client_settings(settings: Mapping[str, str], *, also: Collection[str] = (), prefix: str = "") -> ClientSettings:
    """The settings of connections. Those named in `also` are the caller's to read; all others are refused.

    `prefix` is what the names begin with where the user wrote them, such as `kafka.`; it is for messages only.
    """
    _refuse_others(settings, CLIENT_SETTINGS | SECURITY_SETTINGS | set(also), prefix)
    bootstrap = settings.get("bootstrap.servers", "").strip()
    if not bootstrap:
        raise InvalidSetting(f"{prefix}bootstrap.servers is missing: say where the brokers are, host:port,host:port")
    parse_bootstrap(bootstrap)
    return ClientSettings(
        bootstrap,
        settings.get("client.id", "ottla"),
        _seconds(settings, "request.timeout.ms", REQUEST_TIMEOUT_S, prefix),
        _seconds(settings, "default.api.timeout.ms", TOTAL_TIMEOUT_S, prefix),
        _seconds(settings, "socket.connection.setup.timeout.ms", CONNECT_TIMEOUT_S, prefix),
        parse_security(settings, prefix=prefix),
    )


def consumer_settings(settings: Mapping[str, str], *, also: Collection[str] = (), prefix: str = "") -> ConsumerSettings:
    """The settings of a reader. It reads committed records only unless `isolation.level` says otherwise."""
    client = client_settings(settings, also=CONSUMER_SETTINGS | set(also), prefix=prefix)
    isolation = settings.get("isolation.level", "read_committed").strip().lower()
    if isolation not in ("read_committed", "read_uncommitted"):
        raise InvalidSetting(f"{prefix}isolation.level is read_committed or read_uncommitted, not `{isolation}`")
    wait_name = "fetch.wait.max.ms" if "fetch.wait.max.ms" in settings else "fetch.max.wait.ms"
    fetch = FetchSettings(
        committed=isolation == "read_committed",
        max_bytes=integer(settings, "fetch.max.bytes", FETCH_BYTES_MAX, prefix, minimum=1),
        partition_max_bytes=integer(settings, "max.partition.fetch.bytes", PARTITION_BYTES_MAX, prefix, minimum=1),
        min_bytes=integer(settings, "fetch.min.bytes", 1, prefix, minimum=1),
        max_wait_ms=integer(settings, wait_name, WAIT_MS_MAX, prefix, minimum=0),
        rack=settings.get("client.rack", ""),
    )
    check_crcs = boolean(settings, "check.crcs", default=True, prefix=prefix)
    return ConsumerSettings(client, fetch, check_crcs, settings.get("group.id") or None)


def integer(settings: Mapping[str, str], name: str, default: int, prefix: str = "", *, minimum: int) -> int:
    text = settings.get(name)
    if text is None:
        return default
    try:
        value = int(text)
    except ValueError:
        raise InvalidSetting(f"{prefix}{name} is a whole number, not `{text}`") from None
    if not minimum <= value <= INT32_MAX:
        raise InvalidSetting(f"{prefix}{name} lies between {minimum} and {INT32_MAX}, so {value} is not possible")
    return value


def boolean(settings: Mapping[str, str], name: str, *, default: bool, prefix: str = "") -> bool:
    text = settings.get(name)
    if text is None:
        return default
    if text.strip().lower() not in ("true", "false"):
        raise InvalidSetting(f"{prefix}{name} is true or false, not `{text}`")
    return text.strip().lower() == "true"


def _seconds(settings: Mapping[str, str], name: str, default_s: float, prefix: str) -> float:
    return integer(settings, name, int(default_s * 1000), prefix, minimum=1) / 1000


def _refuse_others(settings: Mapping[str, str], known: Collection[str], prefix: str) -> None:
    for name in settings:
        if name in known:
            continue
        if name in WITHOUT_EFFECT:
            raise InvalidSetting(f"{prefix}{name} has no effect here and should be taken out: {WITHOUT_EFFECT[name]}")
        if name in RENAMED:
            raise InvalidSetting(f"{prefix}{name} is not a client setting any more: {RENAMED[name]}")
        near = nearest(name, known)
        hint = f"did you mean {prefix}{near}?" if near else "take it out"
        raise InvalidSetting(f"{prefix}{name} is not a client setting that is known here: {hint}")
