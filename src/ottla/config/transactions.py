"""Settings of idempotent and transactional producers, and of __transaction_state."""

import dataclasses

from ottla.config.setting import SettingType, setting


@dataclasses.dataclass(frozen=True, kw_only=True)
class TransactionSettings:
    """Producer ids and transactions."""

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
