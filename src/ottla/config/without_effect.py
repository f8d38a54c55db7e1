"""Kafka's settings that steer what Ottla does not have, or does another way that nobody can tell from outside.

A file tuned for Kafka may keep them, with any value: the broker says at start that they have no effect and why. What
would be missed (security, limits, plug-ins) is in refused.py instead.
"""

from collections.abc import Mapping
from typing import NamedTuple


class WithoutEffect(NamedTuple):
    """Why a setting has nothing to act on, and Kafka's default."""

    reason: str
    default: str


# Reason, then one line for each setting: name=Kafka's default.
_TABLE: tuple[tuple[str, str], ...] = (
    (
        "a broker has one event loop and no thread pools to size; more cores means more brokers",
        """
        num.io.threads=8
        background.threads=10
        num.network.threads=3
        group.coordinator.threads=4
        group.coordinator.background.threads=2
        """,
    ),
    (
        "OpenSSL agrees with each client on the best version that both have; ssl.enabled.protocols says which may be",
        """
        ssl.protocol=TLSv1.3
        """,
    ),
    (
        "requests are handled as they arrive, without a queue; queued.max.request.bytes bounds what they hold",
        """
        queued.max.requests=500
        """,
    ),
    (
        "brokers follow the metadata where it is kept and fetch from each other like clients",
        """
        socket.connection.setup.timeout.ms=10000
        socket.connection.setup.timeout.max.ms=30000
        early.start.listeners=
        log.dir.failure.timeout.ms=30000
        controller.socket.timeout.ms=30000
        replica.socket.receive.buffer.bytes=65536
        zookeeper.sync.time.ms=2000
        control.plane.listener.name=
        sasl.mechanism.controller.protocol=GSSAPI
        """,
    ),
    (
        "what a stopping broker leads is handed over at once or not at all; controlled.shutdown.enable says whether",
        """
        controlled.shutdown.max.retries=3
        controlled.shutdown.retry.backoff.ms=5000
        """,
    ),
    (
        "where an unclean election is allowed, and as soon as it is, it takes place at once",
        """
        unclean.leader.election.interval.ms=300000
        """,
    ),
    (
        "a replica that left the in-sync ones may not lead, unless an unclean election is allowed",
        """
        eligible.leader.replicas.enable=false
        """,
    ),
    (
        "it is a switch for Kafka's own tests",
        """
        log.initial.task.delay.ms=30000
        controller.performance.sample.period.ms=60000
        controller.performance.always.log.threshold.ms=2000
        server.max.startup.time.ms=9223372036854775807
        producer.id.expiration.check.interval.ms=600000
        """,
    ),
    (
        "a waiting request is let go as soon as it is answered, so nothing is purged at intervals",
        """
        fetch.purgatory.purge.interval.requests=1000
        producer.purgatory.purge.interval.requests=1000
        delete.records.purgatory.purge.interval.requests=1
        """,
    ),
    (
        "there is no tiered storage to tune",
        """
        follower.fetch.last.tiered.offset.enable=false
        remote.log.storage.manager.impl.prefix=rsm.config.
        remote.log.metadata.manager.impl.prefix=rlmm.config.
        remote.log.storage.manager.class.name=
        remote.log.storage.manager.class.path=
        remote.log.metadata.manager.class.name=org.apache.kafka.server.log.remote.metadata.storage.TopicBasedRemoteLogMetadataManager
        remote.log.metadata.manager.class.path=
        remote.log.metadata.manager.listener.name=
        remote.log.metadata.custom.metadata.max.bytes=128
        remote.log.index.file.cache.total.size.bytes=1073741824
        remote.log.index.file.cache.ttl.ms=900000
        remote.log.manager.thread.pool.size=2
        remote.log.manager.copier.thread.pool.size=10
        remote.log.manager.expiration.thread.pool.size=10
        remote.log.manager.follower.thread.pool.size=2
        remote.log.manager.task.interval.ms=30000
        remote.log.manager.task.retry.backoff.ms=500
        remote.log.manager.task.retry.backoff.max.ms=30000
        remote.log.manager.task.retry.jitter=0.2
        remote.log.reader.threads=10
        remote.log.reader.max.pending.tasks=100
        log.local.retention.ms=-2
        log.local.retention.bytes=-2
        remote.log.manager.copy.max.bytes.per.second=9223372036854775807
        remote.log.manager.copy.quota.window.num=11
        remote.log.manager.copy.quota.window.size.seconds=1
        remote.log.manager.fetch.max.bytes.per.second=9223372036854775807
        remote.log.manager.fetch.quota.window.num=11
        remote.log.manager.fetch.quota.window.size.seconds=1
        remote.fetch.max.wait.ms=500
        remote.list.offsets.request.timeout.ms=30000
        """,
    ),
    (
        "metadata is kept in SQLite or in ZooKeeper (see zookeeper.session.timeout.ms), not in a Raft log",
        """
        initial.broker.registration.timeout.ms=60000
        broker.heartbeat.interval.ms=2000
        broker.session.timeout.ms=9000
        metadata.log.max.record.bytes.between.snapshots=20971520
        metadata.log.max.snapshot.interval.ms=3600000
        metadata.log.dir=
        metadata.log.segment.bytes=1073741824
        metadata.log.segment.min.bytes=8388608
        metadata.log.segment.ms=604800000
        metadata.max.retention.bytes=104857600
        metadata.max.retention.ms=604800000
        metadata.max.idle.interval.ms=500
        internal.metadata.log.segment.bytes=
        internal.metadata.max.batch.size.in.bytes=8388608
        internal.metadata.delete.delay.millis=60000
        controller.quorum.election.timeout.ms=1000
        controller.quorum.fetch.timeout.ms=2000
        controller.quorum.election.backoff.max.ms=1000
        controller.quorum.append.linger.ms=25
        controller.quorum.request.timeout.ms=2000
        controller.quorum.retry.backoff.ms=20
        controller.quorum.auto.join.enable=false
        controller.quorum.fetch.snapshot.max.bytes=1048576
        controller.quorum.fetch.max.bytes=1048576
        zookeeper.metadata.migration.min.batch.size=200
        """,
    ),
    (
        "consumer groups are assigned, and their patterns evaluated, whenever members or topics change",
        """
        group.consumer.assignment.interval.ms=1000
        group.consumer.min.assignment.interval.ms=0
        group.consumer.max.assignment.interval.ms=15000
        group.consumer.regex.refresh.interval.ms=600000
        """,
    ),
    (
        "there is one group coordinator, which serves both protocols; group.coordinator.rebalance.protocols chooses",
        """
        group.coordinator.new.enable=false
        """,
    ),
    (
        "the broker sizes this itself",
        """
        group.coordinator.append.linger.ms=-1
        offsets.load.buffer.size=5242880
        group.coordinator.cached.buffer.max.bytes=1048588
        transaction.state.log.load.buffer.size=5242880
        """,
    ),
    (
        "share groups are not served",
        """
        group.share.session.timeout.ms=45000
        group.share.min.session.timeout.ms=45000
        group.share.max.session.timeout.ms=60000
        group.share.heartbeat.interval.ms=5000
        group.share.min.heartbeat.interval.ms=5000
        group.share.max.heartbeat.interval.ms=15000
        group.share.max.size=200
        group.share.max.groups=10
        group.share.assignors=simple
        group.share.assignment.interval.ms=1000
        group.share.min.assignment.interval.ms=0
        group.share.max.assignment.interval.ms=15000
        group.share.initialize.retry.interval.ms=30000
        group.share.delivery.count.limit=5
        group.share.max.delivery.count.limit=10
        group.share.min.delivery.count.limit=2
        group.share.record.lock.duration.ms=30000
        group.share.min.record.lock.duration.ms=15000
        group.share.max.record.lock.duration.ms=60000
        group.share.partition.max.record.locks=2000
        group.share.max.partition.max.record.locks=4000
        group.share.min.partition.max.record.locks=100
        share.fetch.purgatory.purge.interval.requests=1000
        group.share.max.share.sessions=2000
        group.share.persister.class.name=org.apache.kafka.server.share.persister.DefaultStatePersister
        share.coordinator.state.topic.num.partitions=50
        share.coordinator.state.topic.replication.factor=3
        share.coordinator.state.topic.min.isr=2
        share.coordinator.state.topic.segment.bytes=104857600
        share.coordinator.threads=1
        share.coordinator.snapshot.update.records.per.snapshot=500
        share.coordinator.load.buffer.size=5242880
        share.coordinator.state.topic.compression.codec=0
        share.coordinator.append.linger.ms=-1
        share.coordinator.write.timeout.ms=5000
        share.coordinator.state.topic.prune.interval.ms=300000
        share.coordinator.cold.partition.snapshot.interval.ms=300000
        share.coordinator.cached.buffer.max.bytes=1048588
        """,
    ),
    (
        "groups of the streams protocol are not served",
        """
        group.streams.session.timeout.ms=45000
        group.streams.min.session.timeout.ms=45000
        group.streams.max.session.timeout.ms=60000
        group.streams.heartbeat.interval.ms=5000
        group.streams.min.heartbeat.interval.ms=5000
        group.streams.max.heartbeat.interval.ms=15000
        group.streams.max.size=2147483647
        group.streams.num.standby.replicas=0
        group.streams.max.standby.replicas=2
        group.streams.initial.rebalance.delay.ms=3000
        group.streams.assignment.interval.ms=1000
        group.streams.min.assignment.interval.ms=0
        group.streams.max.assignment.interval.ms=15000
        """,
    ),
    (
        "classes of the JVM cannot be loaded; metrics.listener serves metrics, to Prometheus and as Jolokia",
        """
        metrics.num.samples=2
        metrics.sample.window.ms=30000
        metric.reporters=org.apache.kafka.common.metrics.JmxReporter
        metrics.recording.level=INFO
        auto.include.jmx.reporter=true
        kafka.metrics.reporters=
        kafka.metrics.polling.interval.secs=10
        """,
    ),
    (
        "the connection to ZooKeeper is not made by Java",
        """
        zookeeper.clientCnxnSocket=
        """,
    ),
    (
        "every broker is given its id in node.id",
        """
        broker.id.generation.enable=true
        reserved.broker.max.id=1000
        """,
    ),
    (
        "Kafka 4 has taken this setting away: records are kept and served in format 2, and brokers agree by themselves",
        """
        log.message.format.version=
        inter.broker.protocol.version=
        log.message.downconversion.enable=true
        """,
    ),
    (
        "a commit is always acknowledged by all in-sync replicas",
        """
        offsets.commit.required.acks=-1
        """,
    ),
)

_NO_REPORTERS = "it belongs to a metrics reporter, a class of the JVM that cannot be loaded here"
_PREFIXES: Mapping[str, str] = {
    "rsm.config.": "there is no tiered storage to tune",
    "rlmm.config.": "there is no tiered storage to tune",
    "remote.log.metadata.": "there is no tiered storage to tune",
    "confluent.metrics.": _NO_REPORTERS,
    "confluent.support.": _NO_REPORTERS,
    "confluent.telemetry.": _NO_REPORTERS,
    "cruise.control.metrics.": _NO_REPORTERS,
    "kafka.csv.metrics.": _NO_REPORTERS,
}


def _read() -> dict[str, WithoutEffect]:
    found: dict[str, WithoutEffect] = {}
    for reason, lines in _TABLE:
        for line in lines.split():
            name, _, default = line.partition("=")
            found[name] = WithoutEffect(reason, default)
    return found


WITHOUT_EFFECT: Mapping[str, WithoutEffect] = _read()


def without_effect(name: str) -> WithoutEffect | None:
    """Why a setting has no effect; None of one that is served, refused or not known."""
    known = WITHOUT_EFFECT.get(name)
    if known is not None:
        return known
    return next((WithoutEffect(why, "") for prefix, why in _PREFIXES.items() if name.startswith(prefix)), None)
