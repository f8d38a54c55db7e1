"""Transactions, of the partitions of `__transaction_state` that this broker leads."""

from ottla.telemetry.declaring import attribute, declare, histogram, own
from ottla.telemetry.metric import Kind

_COORDINATOR = "kafka.server:type=transaction-coordinator-metrics"
_VERIFYING = "kafka.server:type=AddPartitionsToTxnManager,name="

LOAD_TIME_MAX = attribute(
    _COORDINATOR, "partition-load-time-max", Kind.GAUGE, "milliseconds", "The longest time it took to read a partition."
)
LOAD_TIME_AVG = attribute(
    _COORDINATOR, "partition-load-time-avg", Kind.GAUGE, "milliseconds", "The mean time it took to read a partition."
)
VERIFICATION_TIME = histogram(
    _VERIFYING + "VerificationTimeMs",
    "milliseconds",
    "How long a write waited until the coordinator had said that its partition is part of the transaction.",
)
VERIFICATION_FAILURES = declare(
    "kafka_server_addpartitionstotxnmanager_verificationfailurerate",
    _VERIFYING + "VerificationFailureRate",
    "Count",
    Kind.COUNTER,
    "writes",
    "Writes that the coordinator did not confirm.",
)
TRANSACTIONS = own(
    "ottla_transactions",
    Kind.GAUGE,
    "transactional ids",
    "Transactional ids by the state of their transaction.",
    ("state",),
)
COMPLETED = own(
    "ottla_transactions_completed_total",
    Kind.COUNTER,
    "transactions",
    "Transactions that this broker brought to their end, by outcome.",
    ("outcome",),
)
