"""Settings of a broker. Each is served as its sentence says; what is not here is in refused.py, with the reason."""

import dataclasses
import functools
import ipaddress
from collections.abc import Mapping

from ottla.config.setting import INT_MAX, LONG_MAX, Setting, SettingType, setting, settings_of
from ottla.config.zookeeper import connect_problem

_CODECS = ("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")
_LONG = SettingType.LONG


@functools.lru_cache(maxsize=8)
def per_ip_overrides(text: str) -> Mapping[str, int]:
    """Read max.connections.per.ip.overrides; ValueError when it is not address:count,address:count."""
    limits: dict[str, int] = {}
    for entry in text.split(","):
        if not entry.strip():
            continue
        host, colon, count = entry.strip().rpartition(":")
        if not colon or not host or not count.isdecimal():
            raise ValueError(entry)
        try:
            address = ipaddress.ip_address(host.strip("[]"))
        except ValueError:
            raise ValueError(entry) from None
        limits[str(address)] = int(count)
    return limits


def _overrides_problem(text: str) -> str | None:
    try:
        per_ip_overrides(text)
    except ValueError as error:
        return f"{error} is not address:count with an IP address"
    return None


RACK_AWARE_SELECTOR = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
LEADER_SELECTOR = "org.apache.kafka.common.replica.LeaderSelector"


def _selector_problem(name: str | None) -> str | None:
    if not name or name in (RACK_AWARE_SELECTOR, LEADER_SELECTOR):
        return None
    return f"classes of the JVM cannot be loaded here; there are {RACK_AWARE_SELECTOR} and {LEADER_SELECTOR}"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class BrokerSettings:
    """Every broker setting that is served. Lists are tuples; None is "not set"."""

    # Who this broker is
    node_id: int = setting(
        1,
        at_least=0,
        kafka_default=None,
        differs="Kafka has no default and will not start without one",
        doc="The id of this broker.",
    )
    broker_id: int = setting(
        1,
        at_least=0,
        kafka_default=-1,
        differs="it follows node.id",
        doc="The name node.id had before KRaft. Give either; if both are given they must agree.",
    )
    broker_rack: str | None = setting(
        None, type=SettingType.STRING, doc="Rack or zone of this broker, reported to clients in metadata."
    )
    process_roles: tuple[str, ...] = setting(
        ("broker", "controller"),
        choices=("broker", "controller"),
        check=lambda roles: None if len(roles) == 2 else "a node is broker and controller in one, give both",
        kafka_default=None,
        differs="every node is both",
        doc="Roles of this process. Only 'broker,controller' is served: a node keeps its metadata itself.",
    )
    controller_listener_names: tuple[str, ...] = setting(
        (),
        doc="Names of listeners that Kafka keeps for its controllers. The controller lives inside the broker process, "
        "so listeners with these names are not opened.",
    )
    controller_quorum_voters: tuple[str, ...] = setting(
        (), doc="Kafka's controller quorum as id@host:port. Only this node itself may be named."
    )
    controller_quorum_bootstrap_servers: tuple[str, ...] = setting(
        (), doc="Where Kafka finds its controller quorum. At most one address, this node's own, may be named."
    )

    # Network
    listeners: tuple[str, ...] = setting(
        ("PLAINTEXT://127.0.0.1:9092",),
        kafka_default=("PLAINTEXT://:9092",),
        differs="without authentication a port open to the network must be asked for",
        doc="Addresses to listen on, as NAME://host:port. An empty host, 0.0.0.0 or [::] means every interface; "
        "port 0 picks a free one. IPv6 addresses stand in brackets.",
    )
    advertised_listeners: tuple[str, ...] | None = setting(
        None,
        type=SettingType.LIST,
        doc="Addresses that clients are told to use, by listener name. Without it the listeners' own addresses, and "
        "this machine's host name for those that listen on every interface.",
    )
    listener_security_protocol_map: str = setting(
        "SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT",
        doc="Security protocol of each listener name. PLAINTEXT is served; a listener that is to speak SSL or SASL is "
        "refused at start.",
    )
    inter_broker_listener_name: str | None = setting(
        None,
        type=SettingType.STRING,
        doc="Listener for traffic between brokers, by default the first one. It must name one of the listeners, the "
        "same on all brokers; a broker on its own has no such traffic.",
    )
    socket_send_buffer_bytes: int = setting(
        102_400, at_least=-1, doc="Size of each socket's send buffer (SO_SNDBUF); -1 leaves it to the system."
    )
    socket_receive_buffer_bytes: int = setting(
        102_400, at_least=-1, doc="Size of each socket's receive buffer (SO_RCVBUF); -1 leaves it to the system."
    )
    socket_request_max_bytes: int = setting(
        104_857_600, at_least=1, doc="Largest request; a connection that announces a larger one is closed."
    )
    socket_listen_backlog_size: int = setting(
        50, at_least=1, doc="Connections that may wait to be accepted on each listener."
    )
    max_connections: int = setting(
        INT_MAX, at_least=0, dynamic="cluster-wide", doc="Most connections this broker keeps open at a time."
    )
    max_connections_per_ip: int = setting(
        INT_MAX, at_least=0, dynamic="cluster-wide", doc="Most connections from one address at a time."
    )
    max_connections_per_ip_overrides: str = setting(
        "",
        dynamic="cluster-wide",
        check=_overrides_problem,
        doc="Limits for single IP addresses that replace max.connections.per.ip, as address:count,address:count.",
    )
    max_connection_creation_rate: int = setting(
        INT_MAX, at_least=1, dynamic="cluster-wide", doc="Most new connections accepted per second."
    )
    connections_max_idle_ms: int = setting(
        600_000, type=_LONG, doc="A connection on which nothing happens for this long is closed; negative never."
    )
    queued_max_requests: int = setting(
        500,
        at_least=1,
        fixed="requests are handled as they arrive, without a queue; queued.max.request.bytes bounds what they hold",
        doc="Requests that wait to be handled.",
    )
    queued_max_request_bytes: int = setting(
        268_435_456,
        type=_LONG,
        kafka_default=-1,
        differs="Kafka sets no bound, so a burst of large requests can exhaust its memory",
        doc="Memory held by requests in flight beyond which the broker stops reading sockets; -1 sets no bound. "
        "At least socket.request.max.bytes.",
    )
    request_timeout_ms: int = setting(
        30_000,
        at_least=1,
        doc="Longest time that a broker waits for another one, and a change of a transaction for its replicas.",
    )

    # Requests
    message_max_bytes: int = setting(
        1_048_588, at_least=0, dynamic="cluster-wide", doc="Default of the topics' max.message.bytes."
    )
    fetch_max_bytes: int = setting(
        57_671_680, at_least=1024, doc="Most bytes in the answer to one fetch, whatever the client asks for."
    )
    max_incremental_fetch_session_cache_slots: int = setting(
        1000, at_least=0, doc="Fetch sessions kept; a client without one repeats its full list in each fetch."
    )
    max_request_partition_size_limit: int = setting(
        2000, at_least=1, doc="Most partitions in one answer to DescribeTopicPartitions."
    )
    auto_create_topics_enable: bool = setting(
        True, doc="Whether a topic that a producer or consumer names comes into being by itself."
    )
    delete_topic_enable: bool = setting(True, doc="Whether topics may be deleted.")
    num_partitions: int = setting(1, at_least=1, doc="Partitions of a topic created without a number.")
    default_replication_factor: int = setting(
        1, doc="Replicas of a topic created without a number. One broker can hold one replica of each partition."
    )

    # Logs
    log_dir: tuple[str, ...] = setting(
        ("/tmp/kafka-logs",),  # noqa: S108 - Kafka's default, which users of a laptop expect
        check=lambda dirs: None if dirs and all(dirs) else "give at least one directory",
        doc="Where data is kept when log.dirs is not given.",
    )
    log_dirs: tuple[str, ...] | None = setting(
        None,
        type=SettingType.LIST,
        check=lambda dirs: None if dirs and all(dirs) else "give at least one directory",
        doc="Directories where data is kept; a new partition goes to the one with the fewest. The first also holds the "
        "metadata.",
    )
    log_segment_bytes: int = setting(
        1_073_741_824, at_least=1_048_576, dynamic="cluster-wide", doc="Default of the topics' segment.bytes."
    )
    log_roll_ms: int | None = setting(
        None, type=_LONG, at_least=1, dynamic="cluster-wide", doc="Default of segment.ms; wins over log.roll.hours."
    )
    log_roll_hours: int = setting(168, at_least=1, doc="Default of segment.ms, in hours.")
    log_roll_jitter_ms: int | None = setting(
        None,
        type=_LONG,
        at_least=0,
        dynamic="cluster-wide",
        doc="Default of segment.jitter.ms; wins over log.roll.jitter.hours.",
    )
    log_roll_jitter_hours: int = setting(0, at_least=0, doc="Default of segment.jitter.ms, in hours.")
    log_retention_ms: int | None = setting(
        None,
        type=_LONG,
        at_least=-1,
        dynamic="cluster-wide",
        check=lambda value: "0 would delete every record at once" if value == 0 else None,
        doc="Default of retention.ms; wins over the minutes and hours. -1 keeps records for ever.",
    )
    log_retention_minutes: int | None = setting(
        None,
        type=SettingType.INT,
        at_least=-1,
        check=lambda value: "0 would delete every record at once" if value == 0 else None,
        doc="Default of retention.ms, in minutes; wins over the hours.",
    )
    log_retention_hours: int = setting(
        168,
        at_least=-1,
        check=lambda value: "0 would delete every record at once" if value == 0 else None,
        doc="Default of retention.ms, in hours.",
    )
    log_retention_bytes: int = setting(
        -1, type=_LONG, dynamic="cluster-wide", doc="Default of the topics' retention.bytes."
    )
    log_retention_check_interval_ms: int = setting(
        300_000, type=_LONG, at_least=1, doc="Time between two looks for segments that retention lets go."
    )
    log_cleanup_policy: tuple[str, ...] = setting(
        ("delete",), choices=("compact", "delete"), dynamic="cluster-wide", doc="Default of the topics' cleanup.policy."
    )
    log_cleaner_enable: bool = setting(True, doc="Whether compacted topics are cleaned at all.")
    log_cleaner_threads: int = setting(
        1,
        at_least=1,
        dynamic="cluster-wide",
        doc="Processes that clean logs, each one log at a time. They are started when there is something to clean.",
    )
    log_cleaner_dedupe_buffer_size: int = setting(
        134_217_728,
        type=_LONG,
        at_least=1_048_576,
        dynamic="cluster-wide",
        doc="Bytes for the newest offsets of keys, over all cleaning processes; 24 bytes a key. A log with more keys "
        "is cleaned in several goes.",
    )
    log_cleaner_io_buffer_size: int = setting(
        4_194_304,
        kafka_default=524_288,
        differs="records are decoded many at a time, and that pays with more of them at hand",
        at_least=65_536,
        dynamic="cluster-wide",
        doc="Bytes of log that a cleaning process reads at a time, over all of them.",
    )
    log_cleaner_io_buffer_load_factor: float = setting(
        0.9,
        at_least=0.01,
        at_most=1,
        dynamic="cluster-wide",
        doc="How full the table of newest offsets may get; fuller is slower.",
    )
    log_cleaner_io_max_bytes_per_second: float = setting(
        1.7976931348623157e308,
        at_least=1,
        dynamic="cluster-wide",
        doc="Bytes that the cleaner may read and write in a second, over all of its processes.",
    )
    log_cleaner_backoff_ms: int = setting(
        15_000,
        type=_LONG,
        at_least=0,
        dynamic="cluster-wide",
        doc="Time the cleaner waits when no log has anything to clean.",
    )
    log_cleaner_min_cleanable_ratio: float = setting(
        0.5, at_least=0, at_most=1, dynamic="cluster-wide", doc="Default of the topics' min.cleanable.dirty.ratio."
    )
    log_cleaner_delete_retention_ms: int = setting(
        86_400_000, type=_LONG, at_least=0, dynamic="cluster-wide", doc="Default of the topics' delete.retention.ms."
    )
    log_cleaner_min_compaction_lag_ms: int = setting(
        0, type=_LONG, at_least=0, dynamic="cluster-wide", doc="Default of the topics' min.compaction.lag.ms."
    )
    log_cleaner_max_compaction_lag_ms: int = setting(
        LONG_MAX, type=_LONG, at_least=1, dynamic="cluster-wide", doc="Default of the topics' max.compaction.lag.ms."
    )
    log_index_size_max_bytes: int = setting(
        10_485_760, at_least=4, dynamic="cluster-wide", doc="Default of the topics' segment.index.bytes."
    )
    log_index_interval_bytes: int = setting(
        4096, at_least=0, dynamic="cluster-wide", doc="Default of the topics' index.interval.bytes."
    )
    log_segment_delete_delay_ms: int = setting(
        60_000, type=_LONG, at_least=0, dynamic="cluster-wide", doc="Default of the topics' file.delete.delay.ms."
    )
    log_flush_interval_messages: int = setting(
        LONG_MAX, type=_LONG, at_least=1, dynamic="cluster-wide", doc="Default of the topics' flush.messages."
    )
    log_flush_interval_ms: int | None = setting(
        None,
        type=_LONG,
        at_least=0,
        dynamic="cluster-wide",
        doc="Default of the topics' flush.ms; without it log.flush.scheduler.interval.ms.",
    )
    log_flush_scheduler_interval_ms: int = setting(
        LONG_MAX, type=_LONG, at_least=1, doc="Time between two looks for logs that flush.ms says to force to disk."
    )
    log_flush_offset_checkpoint_interval_ms: int = setting(
        60_000, at_least=1, doc="Time between two writes of the recovery points, which bound the work after a crash."
    )
    log_flush_start_offset_checkpoint_interval_ms: int = setting(
        60_000, at_least=1, doc="Time between two writes of the log start offsets."
    )
    log_preallocate: bool = setting(False, dynamic="cluster-wide", doc="Default of the topics' preallocate.")
    log_message_timestamp_type: str = setting(
        "CreateTime",
        choices=("CreateTime", "LogAppendTime"),
        dynamic="cluster-wide",
        doc="Default of the topics' message.timestamp.type.",
    )
    log_message_timestamp_before_max_ms: int = setting(
        LONG_MAX,
        type=_LONG,
        at_least=0,
        dynamic="cluster-wide",
        doc="Default of the topics' message.timestamp.before.max.ms.",
    )
    log_message_timestamp_after_max_ms: int = setting(
        3_600_000,
        type=_LONG,
        at_least=0,
        dynamic="cluster-wide",
        doc="Default of the topics' message.timestamp.after.max.ms.",
    )
    num_recovery_threads_per_data_dir: int = setting(
        2, at_least=1, doc="Threads that open, recover and close the logs of one directory at start and stop."
    )
    num_replica_alter_log_dirs_threads: int | None = setting(
        None,
        type=SettingType.INT,
        at_least=1,
        doc="Replicas that may be on their way to another of the log.dirs at a time. Without it as many as there are "
        "directories.",
    )
    replica_alter_log_dirs_io_max_bytes_per_second: int = setting(
        LONG_MAX,
        type=_LONG,
        at_least=0,
        dynamic="cluster-wide",
        doc="How fast replicas are copied from one of the log.dirs to another, all together.",
    )
    alter_log_dirs_replication_quota_window_num: int = setting(
        11, at_least=1, doc="Pieces of the window over which the speed of moves between log.dirs is measured."
    )
    alter_log_dirs_replication_quota_window_size_seconds: int = setting(
        1, at_least=1, doc="Length of each of these pieces."
    )
    leader_replication_throttled_rate: int = setting(
        LONG_MAX,
        type=_LONG,
        at_least=0,
        dynamic="cluster-wide",
        doc="Bytes a second that this broker sends to followers of partitions whose topics throttle them "
        "(leader.replication.throttled.replicas). In-sync followers are not held up, but count.",
    )
    follower_replication_throttled_rate: int = setting(
        LONG_MAX,
        type=_LONG,
        at_least=0,
        dynamic="cluster-wide",
        doc="Bytes a second that this broker fetches for partitions whose topics throttle it "
        "(follower.replication.throttled.replicas). Replicas that have caught up are not held up, but count.",
    )
    replication_quota_window_num: int = setting(
        11, at_least=1, doc="Pieces of the window over which the speed of throttled replication is measured."
    )
    replication_quota_window_size_seconds: int = setting(1, at_least=1, doc="Length of each of these pieces.")
    replica_selector_class: str | None = setting(
        None,
        type=SettingType.STRING,
        check=_selector_problem,
        doc="How consumers are sent to replicas to read from. With RackAwareReplicaSelector a consumer that names its "
        "rack is sent to an in-sync follower there. Without it, or with LeaderSelector, all stay with the leader.",
    )
    replica_high_watermark_checkpoint_interval_ms: int = setting(
        5000, type=_LONG, at_least=1, doc="Time between two writes of the high watermarks."
    )
    compression_type: str = setting(
        "producer", choices=_CODECS, dynamic="cluster-wide", doc="Default of the topics' compression.type."
    )
    compression_gzip_level: int = setting(
        -1,
        at_least=-1,
        at_most=9,
        check=lambda level: "0 is not a level of gzip, use -1 or 1 to 9" if level == 0 else None,
        dynamic="cluster-wide",
        doc="Default of the topics' compression.gzip.level.",
    )
    compression_lz4_level: int = setting(
        9, at_least=1, at_most=17, dynamic="cluster-wide", doc="Default of the topics' compression.lz4.level."
    )
    compression_zstd_level: int = setting(
        3, at_least=-131072, at_most=22, dynamic="cluster-wide", doc="Default of the topics' compression.zstd.level."
    )
    min_insync_replicas: int = setting(
        1, at_least=1, dynamic="cluster-wide", doc="Default of the topics' min.insync.replicas."
    )
    unclean_leader_election_enable: bool = setting(
        False,
        dynamic="cluster-wide",
        doc="Default of the topics' setting of the same name.",
    )

    # Replication
    replica_lag_time_max_ms: int = setting(
        30_000,
        type=_LONG,
        at_least=1,
        doc="A follower that has not caught up with its leader for this long is in sync no more.",
    )
    replica_socket_timeout_ms: int = setting(
        30_000,
        at_least=1,
        doc="How long a follower waits for the answer to a fetch, beyond the time that it lets the leader wait.",
    )
    replica_fetch_max_bytes: int = setting(
        1_048_576,
        at_least=0,
        doc="Bytes of one partition that a follower asks for at once. A batch that is larger comes all the same.",
    )
    replica_fetch_wait_max_ms: int = setting(
        500,
        at_least=1,
        doc="Longest time that a leader holds back its answer to a follower when there is little to send.",
    )
    replica_fetch_min_bytes: int = setting(
        1, at_least=0, doc="With fewer bytes than this to send a leader holds back its answer to a follower."
    )
    replica_fetch_backoff_ms: int = setting(
        1000,
        at_least=0,
        doc="Longest pause of a follower after an error; the first pauses are shorter, and double.",
    )
    replica_fetch_response_max_bytes: int = setting(
        10_485_760, at_least=0, doc="Bytes of all partitions together that a follower asks for at once."
    )
    num_replica_fetchers: int = setting(
        1,
        at_least=1,
        dynamic="cluster-wide",
        doc="Fetches that a follower has under way with each leader at the same time.",
    )

    # Who leads
    auto_leader_rebalance_enable: bool = setting(
        True, doc="Whether the controller gives leadership back to the first replicas of partitions by itself."
    )
    leader_imbalance_check_interval_seconds: int = setting(
        300, type=_LONG, at_least=1, doc="How often the controller looks whether leadership is out of balance."
    )
    leader_imbalance_per_broker_percentage: int = setting(
        10,
        at_least=0,
        at_most=100,
        kafka_default=None,
        differs="Kafka 4 has taken this setting away and acts on any imbalance",
        doc="Share of the partitions whose first replica is on a broker that others may lead before the controller "
        "gives them back to it.",
    )
    controlled_shutdown_enable: bool = setting(
        True, doc="Whether a broker that is stopped hands what it leads to other in-sync replicas first."
    )

    # Producers and groups
    producer_id_expiration_ms: int = setting(
        86_400_000,
        at_least=1,
        dynamic="cluster-wide",
        doc="An idempotent producer that sends nothing to a partition for this long is forgotten there.",
    )
    transaction_max_timeout_ms: int = setting(
        900_000, at_least=1, doc="Longest timeout that a transactional producer may ask for."
    )
    transaction_partition_verification_enable: bool = setting(
        True,
        dynamic="cluster-wide",
        doc="Whether a transactional batch of a client before transaction version 2 is refused unless its partition "
        "was added to the transaction.",
    )
    add_partitions_to_txn_retry_backoff_ms: int = setting(
        20,
        at_least=1,
        doc="Time between two attempts to add a written partition to a transaction while the one before is ending.",
    )
    add_partitions_to_txn_retry_backoff_max_ms: int = setting(
        100, at_least=0, doc="After this long the producer is told to try again itself."
    )
    transaction_abort_timed_out_transaction_cleanup_interval_ms: int = setting(
        10_000, at_least=1, doc="Time between two looks for transactions that have been open for too long."
    )
    transactional_id_expiration_ms: int = setting(
        604_800_000, at_least=1, doc="A transactional id that nobody uses for this long is forgotten."
    )
    transaction_remove_expired_transaction_cleanup_interval_ms: int = setting(
        3_600_000, at_least=1, doc="Time between two looks for transactional ids to forget."
    )
    transaction_state_log_num_partitions: int = setting(
        50, at_least=1, doc="Partitions of __transaction_state when created."
    )
    transaction_state_log_replication_factor: int = setting(
        3,
        type=SettingType.SHORT,
        at_least=1,
        doc="Replicas wanted for __transaction_state. It gets as many as there are brokers when it is created.",
    )
    transaction_state_log_min_isr: int = setting(
        2,
        at_least=1,
        doc="min.insync.replicas of __transaction_state when created; never more than the replicas that it gets.",
    )
    transaction_state_log_segment_bytes: int = setting(
        104_857_600, at_least=1_048_576, doc="segment.bytes of __transaction_state when created."
    )
    offsets_topic_num_partitions: int = setting(50, at_least=1, doc="Partitions of __consumer_offsets when created.")
    offsets_topic_replication_factor: int = setting(
        3,
        type=SettingType.SHORT,
        at_least=1,
        doc="Replicas wanted for __consumer_offsets. It gets as many as there are brokers when it is created.",
    )
    offsets_topic_segment_bytes: int = setting(
        104_857_600, at_least=1_048_576, doc="segment.bytes of __consumer_offsets when created."
    )
    offsets_topic_compression_codec: int = setting(
        0, at_least=0, at_most=4, doc="Codec of what the broker writes there: 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd."
    )
    offset_metadata_max_bytes: int = setting(4096, doc="Longest text that may be committed with an offset.")
    offsets_retention_minutes: int = setting(
        10_080, at_least=1, doc="Committed offsets of a group without members are kept this long."
    )
    offsets_retention_check_interval_ms: int = setting(
        600_000, type=_LONG, at_least=1, doc="Time between two looks for offsets to let go."
    )
    offsets_commit_timeout_ms: int = setting(
        5000, at_least=1, doc="Longest time that a commit waits until its record is replicated."
    )
    group_min_session_timeout_ms: int = setting(6000, doc="Shortest session timeout that a member may ask for.")
    group_max_session_timeout_ms: int = setting(1_800_000, doc="Longest session timeout that a member may ask for.")
    group_initial_rebalance_delay_ms: int = setting(
        3000, doc="How long an empty group waits for more members after the first has joined."
    )
    group_max_size: int = setting(INT_MAX, at_least=1, doc="Most members of one group.")
    group_coordinator_rebalance_protocols: tuple[str, ...] = setting(
        ("classic", "consumer"),
        choices=("classic", "consumer"),
        doc="Protocols that groups may use. classic cannot be left out; those of Kafka Streams and share groups are not"
        " served.",
    )
    group_consumer_session_timeout_ms: int = setting(
        45_000, at_least=1, doc="Members of the consumer protocol that are silent for this long are let go."
    )
    group_consumer_min_session_timeout_ms: int = setting(
        45_000, at_least=1, doc="Shortest session timeout that the setting and a group's own may have."
    )
    group_consumer_max_session_timeout_ms: int = setting(
        60_000, at_least=1, doc="Longest session timeout that the setting and a group's own may have."
    )
    group_consumer_heartbeat_interval_ms: int = setting(
        5_000, at_least=1, doc="How often members of the consumer protocol are told to speak."
    )
    group_consumer_min_heartbeat_interval_ms: int = setting(
        5_000, at_least=1, doc="Shortest heartbeat interval that the setting and a group's own may have."
    )
    group_consumer_max_heartbeat_interval_ms: int = setting(
        15_000, at_least=1, doc="Longest heartbeat interval that the setting and a group's own may have."
    )
    group_consumer_max_size: int = setting(INT_MAX, at_least=1, doc="Most members of a group of the consumer protocol.")
    group_consumer_assignors: tuple[str, ...] = setting(
        ("uniform", "range"),
        choices=("uniform", "range"),
        doc="The broker's assignors that members may ask for; the first is what they get who ask for none.",
    )
    group_consumer_migration_policy: str = setting(
        "bidirectional",
        choices=("bidirectional", "upgrade", "downgrade", "disabled"),
        doc="Which way groups at work may change between the classic and the consumer protocol.",
    )

    # A cluster: metadata in ZooKeeper
    zookeeper_connect: str | None = setting(
        None,
        type=SettingType.STRING,
        check=connect_problem,
        doc="Where ZooKeeper is, as host:port,host:port, and if several clusters share it /path behind the last one; "
        "the path is created. Brokers with the same value are one cluster. Without it this broker is on its own.",
    )
    zookeeper_session_timeout_ms: int = setting(
        18_000,
        at_least=1,
        doc="A broker that ZooKeeper does not hear of for this long is taken for dead, and what it leads goes to "
        "others. ZooKeeper keeps it between 2 and 20 of its ticks.",
    )
    zookeeper_connection_timeout_ms: int | None = setting(
        None,
        type=SettingType.INT,
        at_least=1,
        doc="At start, how long to wait for a connection to ZooKeeper; as long as a session if it is not given.",
    )
    zookeeper_max_in_flight_requests: int = setting(
        10, at_least=1, doc="Most requests that wait for ZooKeeper's answer at a time."
    )
    zookeeper_set_acl: bool = setting(
        False,
        doc="Only brokers, that is the user they authenticate as, may change what they write in ZooKeeper; everybody "
        "may read what is no secret.",
    )
    zookeeper_sasl_username: str | None = setting(
        None,
        type=SettingType.STRING,
        doc="User as which this broker authenticates to ZooKeeper, by SASL with DIGEST-MD5. Kafka reads it from a "
        "JAAS file.",
    )
    zookeeper_sasl_password: str | None = setting(
        None, type=SettingType.PASSWORD, doc="The password of zookeeper.sasl.username."
    )
    zookeeper_ssl_client_enable: bool = setting(False, doc="Talk to ZooKeeper over TLS.")
    zookeeper_ssl_keystore_location: str | None = setting(
        None,
        type=SettingType.STRING,
        doc="PEM file with this broker's private key and certificate, where ZooKeeper asks for one.",
    )
    zookeeper_ssl_keystore_password: str | None = setting(
        None, type=SettingType.PASSWORD, doc="Password of the private key, if it has one."
    )
    zookeeper_ssl_keystore_type: str | None = setting(
        None, type=SettingType.STRING, doc="Only PEM is read; without it the ending of the file's name decides."
    )
    zookeeper_ssl_truststore_location: str | None = setting(
        None,
        type=SettingType.STRING,
        doc="PEM file with the certificates of the authorities to believe; the system's if it is not given.",
    )
    zookeeper_ssl_truststore_type: str | None = setting(
        None, type=SettingType.STRING, doc="Only PEM is read; without it the ending of the file's name decides."
    )
    zookeeper_ssl_endpoint_identification_algorithm: str = setting(
        "HTTPS",
        choices=("HTTPS", ""),
        doc="HTTPS: the server's certificate must name the host; empty: any host will do.",
    )

    explicit: frozenset[str] = frozenset()
    """Names that the user gave, whether or not the value is the default: DescribeConfigs tells them apart."""

    @property
    def data_dirs(self) -> tuple[str, ...]:
        """The directories in force."""
        return self.log_dirs or self.log_dir


BROKER_SETTINGS: Mapping[str, Setting] = settings_of(BrokerSettings)

# The finer unit wins; DescribeConfigs lists the coarser ones as synonyms of the finest.
UNIT_FAMILIES: Mapping[str, tuple[str, ...]] = {
    "log.roll.ms": ("log.roll.ms", "log.roll.hours"),
    "log.roll.jitter.ms": ("log.roll.jitter.ms", "log.roll.jitter.hours"),
    "log.retention.ms": ("log.retention.ms", "log.retention.minutes", "log.retention.hours"),
    "log.retention.minutes": ("log.retention.minutes", "log.retention.hours"),
    "log.flush.interval.ms": ("log.flush.interval.ms", "log.flush.scheduler.interval.ms"),
}
