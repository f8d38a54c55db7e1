"""Settings of a topic: its own overrides, over the broker's settings, over the defaults."""

import dataclasses
import re
from collections.abc import Mapping

from ottla.config.broker import BrokerSettings
from ottla.config.guessing import nearest
from ottla.config.setting import LONG_MAX, ConfigError, Setting, SettingType, Synonym, Value, setting, settings_of

_NO_TIERS = "tiered storage is not served"
_HOUR_MS = 3_600_000
PROMOTING = "promoting:"
"""Before the value of mirror.source while the topic is promoted: nobody but the brokers writes to it then."""
RESTORING = "restore/"
"""Before the value of mirror.source while batches of a backup come in: then it names no cluster."""
STRATEGIES = tuple(
    f"io.confluent.kafka.serializers.subject.{name}NameStrategy" for name in ("Topic", "Record", "TopicRecord")
)


def _throttled_problem(replicas: tuple[str, ...]) -> str | None:
    if replicas in ((), ("*",)):
        return None
    wrong = [entry for entry in replicas if not re.fullmatch("[0-9]{1,9}:[0-9]{1,9}", entry)]
    return f"{wrong[0]!r} is not partition:broker; give a list of these, or * for all replicas" if wrong else None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class TopicSettings:
    """Every topic setting that Kafka 4.3 has; those that say `fixed` take their default value only."""

    cleanup_policy: tuple[str, ...] = setting(
        ("delete",),
        choices=("compact", "delete"),
        synonyms=(Synonym("log.cleanup.policy"),),
        doc="What happens to old segments: 'delete' removes them by time and size, 'compact' keeps the newest record "
        "of every key (docs/compaction.md), both together do both. An empty list keeps everything.",
    )
    compression_type: str = setting(
        "producer",
        choices=("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"),
        synonyms=(Synonym("compression.type"),),
        doc="Codec of the stored batches. 'producer' keeps what the producer sent; a batch is recompressed only "
        "when it came with another codec.",
    )
    compression_gzip_level: int = setting(
        -1,
        at_least=-1,
        at_most=9,
        check=lambda level: "0 is not a level of gzip, use -1 or 1 to 9" if level == 0 else None,
        synonyms=(Synonym("compression.gzip.level"),),
        doc="Level for batches that the broker compresses with gzip; -1 is the codec's own default.",
    )
    compression_lz4_level: int = setting(
        9,
        at_least=1,
        at_most=17,
        synonyms=(Synonym("compression.lz4.level"),),
        doc="Level for batches that the broker compresses with lz4.",
    )
    compression_zstd_level: int = setting(
        3,
        at_least=-131072,
        at_most=22,
        synonyms=(Synonym("compression.zstd.level"),),
        doc="Level for batches that the broker compresses with zstd.",
    )
    segment_bytes: int = setting(
        1_073_741_824,
        at_least=1_048_576,
        synonyms=(Synonym("log.segment.bytes"),),
        doc="A segment that would grow beyond this size is closed and a new one is begun.",
    )
    segment_ms: int = setting(
        604_800_000,
        type=SettingType.LONG,
        at_least=1,
        synonyms=(Synonym("log.roll.ms"), Synonym("log.roll.hours", _HOUR_MS)),
        doc="A segment is closed when its records span this long, even if it is not full.",
    )
    segment_jitter_ms: int = setting(
        0,
        type=SettingType.LONG,
        at_least=0,
        synonyms=(Synonym("log.roll.jitter.ms"), Synonym("log.roll.jitter.hours", _HOUR_MS)),
        doc="Largest random time taken off segment.ms, so that many segments do not roll at the same moment.",
    )
    segment_index_bytes: int = setting(
        10_485_760,
        at_least=4,
        synonyms=(Synonym("log.index.size.max.bytes"),),
        doc="Largest size of an index file; a full index closes its segment.",
    )
    index_interval_bytes: int = setting(
        4096,
        at_least=0,
        synonyms=(Synonym("log.index.interval.bytes"),),
        doc="Bytes of log between two entries of the offset index.",
    )
    retention_ms: int = setting(
        604_800_000,
        type=SettingType.LONG,
        at_least=-1,
        synonyms=(
            Synonym("log.retention.ms"),
            Synonym("log.retention.minutes", 60_000),
            Synonym("log.retention.hours", _HOUR_MS),
        ),
        doc="Segments whose newest record is older than this are deleted; -1 keeps them for ever.",
    )
    retention_bytes: int = setting(
        -1,
        type=SettingType.LONG,
        synonyms=(Synonym("log.retention.bytes"),),
        doc="The oldest segments of a partition are deleted while the rest still has this size; -1 sets no limit.",
    )
    file_delete_delay_ms: int = setting(
        60_000,
        type=SettingType.LONG,
        at_least=0,
        synonyms=(Synonym("log.segment.delete.delay.ms"),),
        doc="Time between a segment leaving the log and its files leaving the disk.",
    )
    flush_messages: int = setting(
        LONG_MAX,
        type=SettingType.LONG,
        at_least=1,
        synonyms=(Synonym("log.flush.interval.messages"),),
        doc="Records appended to a partition before its log is forced to disk.",
    )
    flush_ms: int = setting(
        LONG_MAX,
        type=SettingType.LONG,
        at_least=0,
        synonyms=(Synonym("log.flush.interval.ms"), Synonym("log.flush.scheduler.interval.ms")),
        doc="Longest time an appended record waits before the log is forced to disk.",
    )
    max_message_bytes: int = setting(
        1_048_588,
        at_least=0,
        synonyms=(Synonym("message.max.bytes"),),
        doc="Largest record batch that a producer may send, after compression.",
    )
    message_timestamp_type: str = setting(
        "CreateTime",
        choices=("CreateTime", "LogAppendTime"),
        synonyms=(Synonym("log.message.timestamp.type"),),
        doc="Whether records keep the producer's time or get the time at which the broker appended them.",
    )
    message_timestamp_before_max_ms: int = setting(
        LONG_MAX,
        type=SettingType.LONG,
        at_least=0,
        synonyms=(Synonym("log.message.timestamp.before.max.ms"),),
        doc="How far in the past a record's own time may lie; an older record is refused.",
    )
    message_timestamp_after_max_ms: int = setting(
        3_600_000,
        type=SettingType.LONG,
        at_least=0,
        synonyms=(Synonym("log.message.timestamp.after.max.ms"),),
        doc="How far in the future a record's own time may lie; a later record is refused.",
    )
    min_insync_replicas: int = setting(
        1,
        at_least=1,
        synonyms=(Synonym("min.insync.replicas"),),
        doc="Replicas that must be in sync for acks=all to be taken, and for records to become visible to readers. "
        "More than a partition has replicas counts as that many, as in Kafka.",
    )
    unclean_leader_election_enable: bool = setting(
        False,
        synonyms=(Synonym("unclean.leader.election.enable"),),
        doc="Whether a replica that is not in sync may lead when none that is in sync is alive: the partition can be "
        "used again at once, and what that replica lacks is lost.",
    )
    preallocate: bool = setting(
        False,
        synonyms=(Synonym("log.preallocate"),),
        doc="Whether a new segment's file is given its full size on disk at once.",
    )
    delete_retention_ms: int = setting(
        86_400_000,
        type=SettingType.LONG,
        at_least=0,
        synonyms=(Synonym("log.cleaner.delete.retention.ms"),),
        doc="How long a record without a value, which deletes its key, stays in a compacted topic after the cleaner "
        "has first met it; a reader that keeps up within this time sees every deletion.",
    )
    min_cleanable_dirty_ratio: float = setting(
        0.5,
        at_least=0,
        at_most=1,
        synonyms=(Synonym("log.cleaner.min.cleanable.ratio"),),
        doc="A log is cleaned when the bytes not cleaned yet are more than this share of what could be cleaned.",
    )
    min_compaction_lag_ms: int = setting(
        0,
        type=SettingType.LONG,
        at_least=0,
        synonyms=(Synonym("log.cleaner.min.compaction.lag.ms"),),
        doc="Time for which a record is safe from the cleaner, by the records' own timestamps.",
    )
    max_compaction_lag_ms: int = setting(
        LONG_MAX,
        type=SettingType.LONG,
        at_least=1,
        synonyms=(Synonym("log.cleaner.max.compaction.lag.ms"),),
        doc="A log with an uncleaned record older than this is cleaned whatever its share of dirty bytes; segments "
        "are finished in time for it.",
    )
    leader_replication_throttled_replicas: tuple[str, ...] = setting(
        (),
        check=_throttled_problem,
        doc="Leaders which hold back from followers that are not in sync when leader.replication.throttled.rate is "
        "used up, as partition:broker,partition:broker or * for all.",
    )
    follower_replication_throttled_replicas: tuple[str, ...] = setting(
        (),
        check=_throttled_problem,
        doc="Followers which, while not in sync, ask for nothing when follower.replication.throttled.rate is used up, "
        "as partition:broker,partition:broker or * for all.",
    )
    remote_storage_enable: bool = setting(False, fixed=_NO_TIERS, doc="Whether old segments move to remote storage.")
    local_retention_ms: int = setting(
        -2, type=SettingType.LONG, fixed=_NO_TIERS, doc="Time that segments stay local; -2 means retention.ms."
    )
    local_retention_bytes: int = setting(
        -2, type=SettingType.LONG, fixed=_NO_TIERS, doc="Bytes that stay local; -2 means retention.bytes."
    )
    remote_log_copy_disable: bool = setting(
        False, fixed=_NO_TIERS, doc="Whether copying to remote storage is stopped for this topic."
    )
    remote_log_delete_on_disable: bool = setting(
        False, fixed=_NO_TIERS, doc="Whether remote data is deleted when tiering is switched off."
    )
    mirror_source: str = setting(
        "",
        doc="Which topic this one is a copy of, with the same offsets, as CLUSTER_ID/TOPIC_ID: set by a mirror's flow "
        "with `offsets: keep`, and taken away by `ottla mirror promote` (docs/mirroring.md). As long as it is set only "
        "the mirror writes to the topic; producers are refused with POLICY_VIOLATION. `ottla backup restore` sets it "
        "to restore/NAME until a topic that it writes batch for batch is whole (docs/backup.md).",
    )
    confluent_value_schema_validation: bool = setting(
        False,
        doc="Whether every value must carry the id of a schema that the registry (confluent.schema.registry.url) has "
        "for it; records without are refused as INVALID_RECORD, each with its reason (docs/schemas.md).",
    )
    confluent_key_schema_validation: bool = setting(
        False,
        doc="The same for keys. A record without a key is taken.",
    )
    confluent_value_subject_name_strategy: str = setting(
        STRATEGIES[0],
        choices=STRATEGIES,
        doc="Which subject the schema of a value belongs to: TopicNameStrategy is TOPIC-value, RecordNameStrategy any, "
        "TopicRecordNameStrategy one that begins with TOPIC-.",
    )
    confluent_key_subject_name_strategy: str = setting(
        STRATEGIES[0], choices=STRATEGIES, doc="The same for keys, where TopicNameStrategy is TOPIC-key."
    )


TOPIC_SETTINGS: Mapping[str, Setting] = settings_of(TopicSettings)


def unknown_topic_setting(name: str) -> str:
    """What to tell someone who used a name that no topic setting has."""
    said = f"{name}: there is no such topic setting"
    for topic in TOPIC_SETTINGS.values():
        if name in {synonym.name for synonym in topic.synonyms}:
            return f"{said}; it is the brokers' default of {topic.name}"
    close = nearest(name, TOPIC_SETTINGS)
    return said + (f", did you mean {close}?" if close else "")


def broker_default(declared: Setting, broker: BrokerSettings) -> Value:
    """The value a topic setting has when the topic does not override it: the finest unit that is set wins."""
    for name, factor in declared.synonyms:
        value: Value = getattr(broker, name.replace(".", "_"))
        if value is None:
            continue
        if factor == 1 or not isinstance(value, int):
            return value
        # A negative number of hours means "for ever", which is -1 in every unit.
        return value * factor if value >= 0 else -1
    return declared.default


def validate_topic_overrides(overrides: Mapping[str, str | None]) -> dict[str, Value]:
    """Parse a topic's overrides; ConfigError lists everything that is wrong with them."""
    values: dict[str, Value] = {}
    problems: list[str] = []
    for name, text in overrides.items():
        declared = TOPIC_SETTINGS.get(name)
        if declared is None:
            problems.append(unknown_topic_setting(name))
        elif text is None:
            problems.append(f"{name}: null is not a value")
        else:
            try:
                values[name] = declared.parse(text)
            except ConfigError as error:
                problems.extend(error.problems)
    shortest, longest = values.get("min.compaction.lag.ms", 0), values.get("max.compaction.lag.ms", LONG_MAX)
    if isinstance(shortest, int) and isinstance(longest, int) and shortest > longest:
        problems.append(f"min.compaction.lag.ms: {shortest} is more than max.compaction.lag.ms, {longest}")
    if problems:
        raise ConfigError(problems)
    return values


def resolve_topic(overrides: Mapping[str, str], broker: BrokerSettings) -> TopicSettings:
    """The settings in force for a topic with these overrides on this broker."""
    values = {s.attribute: broker_default(s, broker) for s in TOPIC_SETTINGS.values()}
    for name, value in validate_topic_overrides(overrides).items():
        values[TOPIC_SETTINGS[name].attribute] = value
    return TopicSettings(**values)  # type: ignore[arg-type]  # every value was parsed by its own setting
