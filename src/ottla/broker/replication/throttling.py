"""The two throttles of a broker's replication, made from its settings and its topics'."""

from ottla.broker.quotas.rates import ByteQuota
from ottla.broker.quotas.throttles import ReplicationThrottle
from ottla.config.live import LiveConfig


def leader_throttle(node_id: int, config: LiveConfig) -> ReplicationThrottle:
    """For what this broker sends to followers."""
    return ReplicationThrottle(
        node_id,
        ByteQuota(lambda: config.broker.leader_replication_throttled_rate, *_window(config)),
        lambda topic: config.topic(topic).leader_replication_throttled_replicas,
    )


def follower_throttle(node_id: int, config: LiveConfig) -> ReplicationThrottle:
    """For what this broker fetches from leaders."""
    return ReplicationThrottle(
        node_id,
        ByteQuota(lambda: config.broker.follower_replication_throttled_rate, *_window(config)),
        lambda topic: config.topic(topic).follower_replication_throttled_replicas,
    )


def _window(config: LiveConfig) -> tuple[int, int]:
    return config.static.replication_quota_window_num, config.static.replication_quota_window_size_seconds
