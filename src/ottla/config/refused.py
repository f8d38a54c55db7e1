"""Kafka's settings that are not served, each with the reason.

A file that has one of them is refused with that reason, unless it gives Kafka's default or another value that
describes what the broker does anyway: such a line changes nothing.
"""

from collections.abc import Mapping
from typing import NamedTuple


class Refusal(NamedTuple):
    """Why a setting is not served, and the values that may be given all the same (Kafka's default first)."""

    reason: str
    given: tuple[str, ...]
    harmless: frozenset[str]


# Reason, then one line for each setting: name=default, and after '|' other values that are harmless.
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
        "brokers follow the metadata where it is kept and fetch from each other like clients: it would act on nothing",
        """
        socket.connection.setup.timeout.ms=10000
        socket.connection.setup.timeout.max.ms=30000
        early.start.listeners=
        log.dir.failure.timeout.ms=30000
        controller.socket.timeout.ms=30000
        replica.socket.receive.buffer.bytes=65536
        """,
    ),
    (
        "where an unclean election is allowed, and as soon as it is, it takes place at once",
        """
        unclean.leader.election.interval.ms=300000
        """,
    ),
    (
        "classes of the JVM cannot be loaded here",
        """
        config.providers=
        create.topic.policy.class.name=
        alter.config.policy.class.name=
        client.quota.callback.class=
        """,
    ),
    (
        "only PLAINTEXT without authentication or authorisation is served so far",
        """
        authorizer.class.name=
        connection.failed.authentication.delay.ms=100
        security.inter.broker.protocol=PLAINTEXT
        sasl.mechanism.controller.protocol=GSSAPI
        connections.max.reauth.ms=0
        sasl.server.max.receive.size=524288
        security.providers=
        principal.builder.class=org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder
        ssl.client.auth=none
        ssl.principal.mapping.rules=DEFAULT
        ssl.allow.dn.changes=false
        ssl.allow.san.changes=false
        ssl.protocol=TLSv1.3
        ssl.provider=
        ssl.enabled.protocols=TLSv1.2,TLSv1.3
        ssl.keystore.type=JKS
        ssl.keystore.location=
        ssl.keystore.password=
        ssl.key.password=
        ssl.keystore.key=
        ssl.keystore.certificate.chain=
        ssl.truststore.type=JKS
        ssl.truststore.location=
        ssl.truststore.password=
        ssl.truststore.certificates=
        ssl.keymanager.algorithm=
        ssl.trustmanager.algorithm=
        ssl.endpoint.identification.algorithm=https
        ssl.secure.random.implementation=
        ssl.cipher.suites=
        ssl.engine.factory.class=
        sasl.mechanism.inter.broker.protocol=GSSAPI
        sasl.enabled.mechanisms=GSSAPI
        sasl.server.callback.handler.class=
        sasl.kerberos.principal.to.local.rules=DEFAULT
        sasl.jaas.config=
        sasl.client.callback.handler.class=
        sasl.login.class=
        sasl.login.callback.handler.class=
        sasl.kerberos.service.name=
        sasl.kerberos.kinit.cmd=/usr/bin/kinit
        sasl.kerberos.ticket.renew.window.factor=0.8
        sasl.kerberos.ticket.renew.jitter=0.05
        sasl.kerberos.min.time.before.relogin=60000
        sasl.login.refresh.window.factor=0.8
        sasl.login.refresh.window.jitter=0.05
        sasl.login.refresh.min.period.seconds=60
        sasl.login.refresh.buffer.seconds=300
        sasl.login.connect.timeout.ms=
        sasl.login.read.timeout.ms=
        sasl.login.retry.backoff.max.ms=10000
        sasl.login.retry.backoff.ms=100
        sasl.oauthbearer.jwt.retriever.class=org.apache.kafka.common.security.oauthbearer.DefaultJwtRetriever
        sasl.oauthbearer.jwt.validator.class=org.apache.kafka.common.security.oauthbearer.DefaultJwtValidator
        sasl.oauthbearer.scope=
        sasl.oauthbearer.client.credentials.client.id=
        sasl.oauthbearer.client.credentials.client.secret=
        sasl.oauthbearer.assertion.algorithm=RS256
        sasl.oauthbearer.assertion.claim.aud=
        sasl.oauthbearer.assertion.claim.exp.seconds=300
        sasl.oauthbearer.assertion.claim.iss=
        sasl.oauthbearer.assertion.claim.jti.include=false
        sasl.oauthbearer.assertion.claim.nbf.seconds=60
        sasl.oauthbearer.assertion.claim.sub=
        sasl.oauthbearer.assertion.file=
        sasl.oauthbearer.assertion.private.key.file=
        sasl.oauthbearer.assertion.private.key.passphrase=
        sasl.oauthbearer.assertion.template.file=
        sasl.oauthbearer.scope.claim.name=scope
        sasl.oauthbearer.sub.claim.name=sub
        sasl.oauthbearer.token.endpoint.url=
        sasl.oauthbearer.jwks.endpoint.url=
        sasl.oauthbearer.jwks.endpoint.refresh.ms=3600000
        sasl.oauthbearer.jwks.endpoint.retry.backoff.ms=100
        sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms=10000
        sasl.oauthbearer.clock.skew.seconds=30
        sasl.oauthbearer.expected.audience=
        sasl.oauthbearer.expected.issuer=
        delegation.token.secret.key=
        delegation.token.max.lifetime.ms=604800000
        delegation.token.expiry.time.ms=86400000
        delegation.token.expiry.check.interval.ms=3600000
        super.users=
        allow.everyone.if.no.acl.found=false|true
        """,
    ),
    (
        "this is a switch for Kafka's own tests",
        """
        unstable.api.versions.enable=false
        unstable.feature.versions.enable=false
        log.initial.task.delay.ms=30000
        controller.performance.sample.period.ms=60000
        controller.performance.always.log.threshold.ms=2000
        server.max.startup.time.ms=9223372036854775807
        producer.id.expiration.check.interval.ms=600000
        """,
    ),
    (
        "a directory cannot be closed to new partitions yet",
        """
        cordoned.log.dirs=
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
        "tiered storage is not served",
        """
        follower.fetch.last.tiered.offset.enable=false
        remote.log.storage.system.enable=false
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
        "metadata is kept in SQLite, not in a Raft log",
        """
        initial.broker.registration.timeout.ms=60000
        broker.heartbeat.interval.ms=2000
        broker.session.timeout.ms=9000
        metadata.log.max.record.bytes.between.snapshots=20971520
        metadata.log.max.snapshot.interval.ms=3600000
        metadata.log.dir=
        metadata.log.segment.bytes=1073741824
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
        """,
    ),
    (
        "consumer groups are assigned, and their patterns evaluated, whenever members or topics change",
        """
        group.consumer.assignment.interval.ms=1000|0
        group.consumer.min.assignment.interval.ms=0
        group.consumer.max.assignment.interval.ms=15000
        group.consumer.regex.refresh.interval.ms=600000
        """,
    ),
    (
        "the broker sizes this itself",
        """
        group.coordinator.append.linger.ms=-1
        offsets.load.buffer.size=5242880
        group.coordinator.cached.buffer.max.bytes=1048588
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
        share.coordinator.state.topic.replication.factor=3|1
        share.coordinator.state.topic.min.isr=2|1
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
        "the transaction log is read in pieces of a fixed size",
        """
        transaction.state.log.load.buffer.size=5242880
        """,
    ),
    (
        "transactions are ended by their producers or by their timeout; two-phase commit is not served",
        """
        transaction.two.phase.commit.enable=false
        """,
    ),
    (
        "quotas are not served yet",
        """
        quota.window.num=11
        controller.quota.window.num=11
        quota.window.size.seconds=1
        controller.quota.window.size.seconds=1
        """,
    ),
    (
        "there is no JMX, and metrics are not served yet",
        """
        metrics.num.samples=2
        metrics.sample.window.ms=30000
        metric.reporters=org.apache.kafka.common.metrics.JmxReporter
        metrics.recording.level=INFO
        kafka.metrics.reporters=
        kafka.metrics.polling.interval.secs=10
        telemetry.max.bytes=1048576
        """,
    ),
    (
        "TLS to ZooKeeper is Python's: its protocols and ciphers are those of the system",
        """
        zookeeper.clientCnxnSocket=|org.apache.zookeeper.ClientCnxnSocketNetty|org.apache.zookeeper.ClientCnxnSocketNIO
        zookeeper.ssl.protocol=TLSv1.2|TLSv1.3|TLS
        zookeeper.ssl.enabled.protocols=
        zookeeper.ssl.cipher.suites=
        zookeeper.ssl.crl.enable=false
        zookeeper.ssl.ocsp.enable=false
        zookeeper.ssl.truststore.password=
        """,
    ),
    (
        "it is not served; nothing here would act on it",
        """
        zookeeper.sync.time.ms=2000
        zookeeper.metadata.migration.enable=false
        """,
    ),
    (
        "every broker is given its id in node.id",
        """
        broker.id.generation.enable=false
        reserved.broker.max.id=
        """,
    ),
    (
        "Kafka has taken this setting away; give listeners or advertised.listeners",
        """
        host.name=
        port=
        advertised.host.name=
        advertised.port=
        control.plane.listener.name=
        """,
    ),
    (
        "Kafka 4 has taken this setting away: records are always kept and served in format 2",
        """
        log.message.format.version=
        inter.broker.protocol.version=
        log.message.downconversion.enable=
        """,
    ),
    (
        "Kafka 4 has taken this setting away; there are log.message.timestamp.before.max.ms and .after.max.ms",
        """
        log.message.timestamp.difference.max.ms=
        """,
    ),
    (
        "Kafka 4 has taken this setting away",
        """
        offsets.commit.required.acks=
        password.encoder.secret=
        password.encoder.old.secret=
        password.encoder.keyfactory.algorithm=
        password.encoder.cipher.algorithm=
        password.encoder.key.length=
        password.encoder.iterations=
        quota.producer.default=
        quota.consumer.default=
        auto.include.jmx.reporter=
        """,
    ),
)

_PREFIXES: Mapping[str, str] = {
    "listener.name.": "settings for one listener are not served so far",
    "sasl.": "only PLAINTEXT without authentication is served so far",
    "ssl.": "only PLAINTEXT without encryption is served so far",
    "rsm.config.": "tiered storage is not served",
    "rlmm.config.": "tiered storage is not served",
}


def _read() -> dict[str, Refusal]:
    found: dict[str, Refusal] = {}
    for reason, lines in _TABLE:
        for line in lines.split():
            name, _, values = line.partition("=")
            given = tuple(values.split("|"))
            found[name] = Refusal(reason, given, frozenset(_normal(value) for value in given))
    return found


def _normal(text: str) -> str:
    """One spelling for values that mean the same."""
    text = ",".join(word.strip() for word in text.split(","))
    try:
        return repr(float(text))
    except ValueError:
        return text.lower() if text.lower() in ("true", "false") else text


REFUSED: Mapping[str, Refusal] = _read()


def refusal(name: str, text: str) -> str | None:
    """Why this setting is refused with this value; None when the value is harmless.

    KeyError for a name that is no known setting of Kafka's.
    """
    known = REFUSED.get(name)
    if known is None:
        for prefix, reason in _PREFIXES.items():
            if name.startswith(prefix):
                return reason
        raise KeyError(name)
    return None if _normal(text) in known.harmless else known.reason
