"""Settings of the group coordinator, and of __consumer_offsets. What one group may have for itself is in group.py."""

import dataclasses

from ottla.config.setting import INT_MAX, SettingType, setting


@dataclasses.dataclass(frozen=True, kw_only=True)
class GroupCoordinatorSettings:
    """Groups, their members, and the offsets that they commit."""

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
        600_000, type=SettingType.LONG, at_least=1, doc="Time between two looks for offsets to let go."
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
        choices=("classic", "consumer", "share", "streams"),
        kafka_default=("classic", "consumer", "streams"),
        differs="the protocol of Kafka Streams is not served",
        doc="Protocols that groups may use. classic cannot be left out; streams and share have no effect, because "
        "these groups are not served.",
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


def group_problems(settings: GroupCoordinatorSettings) -> list[str]:
    """Problems that only show when several settings are seen together."""
    problems = []
    if settings.group_min_session_timeout_ms > settings.group_max_session_timeout_ms:
        problems.append("group.min.session.timeout.ms: it is greater than group.max.session.timeout.ms")
    for name, least, value, most in (
        (
            "group.consumer.session.timeout.ms",
            settings.group_consumer_min_session_timeout_ms,
            settings.group_consumer_session_timeout_ms,
            settings.group_consumer_max_session_timeout_ms,
        ),
        (
            "group.consumer.heartbeat.interval.ms",
            settings.group_consumer_min_heartbeat_interval_ms,
            settings.group_consumer_heartbeat_interval_ms,
            settings.group_consumer_max_heartbeat_interval_ms,
        ),
    ):
        if not least <= value <= most:
            problems.append(f"{name}: {value} is not between its least ({least}) and its greatest ({most}) value")
    if settings.group_consumer_heartbeat_interval_ms >= settings.group_consumer_session_timeout_ms:
        problems.append("group.consumer.heartbeat.interval.ms: it is not less than group.consumer.session.timeout.ms")
    if "classic" not in settings.group_coordinator_rebalance_protocols:
        problems.append("group.coordinator.rebalance.protocols: classic cannot be left out")
    if not settings.group_consumer_assignors:
        problems.append("group.consumer.assignors: at least one is needed")
    return problems
