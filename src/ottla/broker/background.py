"""The list of what a broker does by itself, and how often."""

import asyncio

from ottla.broker.controller.leading import LeadingController
from ottla.broker.coordination.runtime import GroupCoordinator
from ottla.broker.coordination.transaction_runtime import TransactionCoordinator
from ottla.broker.jobs import Job
from ottla.broker.replication.isr import IsrWriter
from ottla.broker.replication.partitions import Partitions
from ottla.broker.storage.compaction.cleaner import LogCleaner
from ottla.broker.storage.manager import LogManager
from ottla.cluster.store import MetadataStore
from ottla.config.broker import BrokerSettings
from ottla.config.live import LiveConfig
from ottla.model.clock import Clock

DELETED_FILES_INTERVAL_MS = 1_000
FLUSH_INTERVAL_MS_MAX = 1_000
AWAKE_INTERVAL_MS_MAX = 60_000
PRODUCER_EXPIRY_INTERVAL_MS = 600_000
MISSING_LOGS_INTERVAL_MS = 5_000


def storage_jobs(logs: LogManager, cleaner: LogCleaner, config: LiveConfig, clock: Clock) -> list[Job]:
    settings, now_ms = config.static, clock.now_ms

    async def apply_retention() -> None:
        logs.roll_expired(now_ms())
        await asyncio.to_thread(logs.drop_expired, now_ms())

    async def remove_deleted() -> None:
        await asyncio.to_thread(logs.remove_deleted, now_ms())

    async def expire_producers() -> None:
        logs.expire_producers(now_ms(), config.broker.producer_id_expiration_ms)

    return [
        Job("retention", lambda: settings.log_retention_check_interval_ms, apply_retention),
        Job("log cleaner", lambda: config.broker.log_cleaner_backoff_ms, cleaner.run),
        Job("flush", lambda: _flush_interval_ms(settings), lambda: asyncio.to_thread(logs.flush_due, now_ms())),
        Job("checkpoint", lambda: _checkpoint_interval_ms(settings), lambda: asyncio.to_thread(logs.checkpoint)),
        Job("deleted files", lambda: DELETED_FILES_INTERVAL_MS, remove_deleted),
        Job("producer expiry", lambda: PRODUCER_EXPIRY_INTERVAL_MS, expire_producers),
    ]


def replication_jobs(
    partitions: Partitions, isr: IsrWriter, leading: LeadingController, store: MetadataStore, settings: BrokerSettings
) -> list[Job]:
    balance_seconds = settings.leader_imbalance_check_interval_seconds
    return [
        Job("in-sync replicas", lambda: max(settings.replica_lag_time_max_ms // 2, 1), isr.check_all),
        Job("awake", lambda: _awake_interval_ms(store.session_timeout_ms), partitions.note_awake),
        Job("missing logs", lambda: MISSING_LOGS_INTERVAL_MS, partitions.retry_missing),
        Job("leader balance", lambda: balance_seconds * 1000, leading.rebalance),
    ]


def coordinator_jobs(
    groups: GroupCoordinator, transactions: TransactionCoordinator, settings: BrokerSettings
) -> list[Job]:
    return [
        Job("offset expiry", lambda: settings.offsets_retention_check_interval_ms, groups.expire),
        Job(
            "transaction timeouts",
            lambda: settings.transaction_abort_timed_out_transaction_cleanup_interval_ms,
            transactions.abort_timed_out,
        ),
        Job(
            "transactional id expiry",
            lambda: settings.transaction_remove_expired_transaction_cleanup_interval_ms,
            transactions.expire,
        ),
    ]


def _flush_interval_ms(settings: BrokerSettings) -> int:
    """Finished segments are flushed in the background too, so this job has its own pace when none is set."""
    return min(settings.log_flush_scheduler_interval_ms, FLUSH_INTERVAL_MS_MAX)


def _awake_interval_ms(session_timeout_ms: int) -> int:
    """Often enough in a session timeout to notice a standstill."""
    return min(session_timeout_ms // 8, AWAKE_INTERVAL_MS_MAX)


def _checkpoint_interval_ms(settings: BrokerSettings) -> int:
    """One job writes the three checkpoints, as often as the most frequent of them is wanted."""
    return min(
        settings.log_flush_offset_checkpoint_interval_ms,
        settings.log_flush_start_offset_checkpoint_interval_ms,
        settings.replica_high_watermark_checkpoint_interval_ms,
    )
