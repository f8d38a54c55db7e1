"""Settings of what requests may ask for, and of topics that are created without saying everything."""

import dataclasses

from ottla.config.setting import setting


@dataclasses.dataclass(frozen=True, kw_only=True)
class RequestSettings:
    """Limits of requests, and defaults of new topics."""

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
