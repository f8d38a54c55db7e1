"""Settings of replicas: how they follow, when they are in sync, who leads."""

import dataclasses

from ottla.config.setting import LONG_MAX, SettingType, setting

_LONG = SettingType.LONG

RACK_AWARE_SELECTOR = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
LEADER_SELECTOR = "org.apache.kafka.common.replica.LeaderSelector"


def _selector_problem(name: str | None) -> str | None:
    if not name or name in (RACK_AWARE_SELECTOR, LEADER_SELECTOR):
        return None
    return f"classes of the JVM cannot be loaded here; there are {RACK_AWARE_SELECTOR} and {LEADER_SELECTOR}"


@dataclasses.dataclass(frozen=True, kw_only=True)
class ReplicationSettings:
    """Fetching from leaders, throttles, the ISR, and leadership."""

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
    min_insync_replicas: int = setting(
        1, at_least=1, dynamic="cluster-wide", doc="Default of the topics' min.insync.replicas."
    )
    unclean_leader_election_enable: bool = setting(
        False,
        dynamic="cluster-wide",
        doc="Default of the topics' setting of the same name.",
    )
    auto_leader_rebalance_enable: bool = setting(
        True, doc="Whether the controller gives leadership back to the first replicas of partitions by itself."
    )
    leader_imbalance_check_interval_seconds: int = setting(
        300,
        type=_LONG,
        at_least=1,
        doc="How often the controller looks whether leadership is out of balance.",
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
