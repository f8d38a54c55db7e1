"""Which records of a batch a topic does not take, each named with its place in the batch.

A batch is taken whole or not at all. Where single records are at fault the answer names them, so that a client can
tell them from those that only shared their batch. A record without a key comes before one with a wrong time; one wrong
time makes INVALID_TIMESTAMP of the whole answer, whatever else there is. Records that do not parse are nobody's in
particular: then the batch is refused without names.
"""

from typing import NamedTuple

from ottla.broker.storage.append_rules import AppendRules
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.sentinels import NO_TIMESTAMP
from ottla.protocol import varint
from ottla.protocol.compression import Buffer
from ottla.protocol.errors import CorruptBatch, MalformedMessage
from ottla.protocol.records import LOG_APPEND_TIME, BatchHeader

SHOWN_MAX = 3
"""How many records the message about the batch quotes, as in Kafka."""
MESSAGES_MAX = 1000
"""How many records get words of their own; a client shows the batch's to the others. Bounds what an answer grows to."""
CLAIMED = "the batch claims LogAppendTime as its timestamp type, which only a broker may set: send CreateTime"


class RecordError(NamedTuple):
    batch_index: int
    message: str | None


class InvalidRecords(ApiError):
    """A batch that is refused because of some of its records."""

    def __init__(self, code: ErrorCode, message: str, record_errors: list[RecordError]) -> None:
        super().__init__(code, message)
        self.record_errors = record_errors


class _Fault(NamedTuple):
    batch_index: int
    timestamp: int | None
    """None where it is the key that is missing."""


def check_records(payload: Buffer, header: BatchHeader, rules: AppendRules, now_ms: int) -> None:
    """Look at every record of a (decompressed) payload; raises InvalidRecords, or ApiError if they do not parse."""
    try:
        seen, faults = _find_faults(bytes(payload), header, rules, now_ms)
    except (IndexError, MalformedMessage) as error:
        raise ApiError(ErrorCode.INVALID_RECORD, f"the records do not parse: {error}") from None
    if seen != header.record_count:
        raise ApiError(ErrorCode.INVALID_RECORD, f"the batch claims {header.record_count} records and holds {seen}")
    if faults:
        raise _refusal(faults, header, rules, now_ms)


def _find_faults(payload: bytes, header: BatchHeader, rules: AppendRules, now_ms: int) -> tuple[int, list[_Fault]]:
    """How many records there are, and what is wrong with which. Only the beginning of each is read."""
    faults = []
    needs_keys = rules.needs_keys
    earliest, latest = rules.timestamp_range(now_ms)
    base_timestamp = header.base_timestamp
    claims = header.attributes & LOG_APPEND_TIME  # then the header's time is that of every record
    claim_refused = claims and _is_claim_refused(header, rules, earliest, latest)
    read_signed = varint.read_signed
    position, end, count = 0, len(payload), 0
    while position < end:
        length, position = read_signed(payload, position)
        record_end = position + length
        if length < 0 or record_end > end:
            raise CorruptBatch("a record is cut short")
        timestamp_delta, position = read_signed(payload, position + 1)
        while payload[position] >= 0x80:  # the offset delta, which is not looked at
            position += 1
        key_length, position = read_signed(payload, position + 1)
        if (position if key_length < 0 else position + key_length) > record_end:
            raise CorruptBatch("a record is cut short")
        if key_length < 0 and needs_keys:
            faults.append(_Fault(count, None))
        elif claims:
            if claim_refused:
                faults.append(_Fault(count, header.max_timestamp))
        elif not earliest <= base_timestamp + timestamp_delta <= latest:
            timestamp = base_timestamp + timestamp_delta
            if timestamp != NO_TIMESTAMP:
                faults.append(_Fault(count, timestamp))
        position = record_end
        count += 1
    return count, faults


def _is_claim_refused(header: BatchHeader, rules: AppendRules, earliest: int, latest: int) -> bool:
    """A topic that keeps the producer's times takes the claimed one for that, if there is one."""
    if rules.log_append_time or header.max_timestamp == NO_TIMESTAMP:
        return True
    return not earliest <= header.max_timestamp <= latest


# What is said of them


def _refusal(faults: list[_Fault], header: BatchHeader, rules: AppendRules, now_ms: int) -> InvalidRecords:
    errors = [
        RecordError(fault.batch_index, _words(fault, header, rules, now_ms) if number < MESSAGES_MAX else None)
        for number, fault in enumerate(faults)
    ]
    shown = "; ".join(f"record {error.batch_index}: {error.message}" for error in errors[:SHOWN_MAX])
    more = f"; and {len(errors) - SHOWN_MAX} more" if len(errors) > SHOWN_MAX else ""
    return InvalidRecords(
        ErrorCode.INVALID_RECORD if all(fault.timestamp is None for fault in faults) else ErrorCode.INVALID_TIMESTAMP,
        f"{len(errors)} of the batch's {header.record_count} records are invalid, so none was appended: {shown}{more}",
        errors,
    )


def _words(fault: _Fault, header: BatchHeader, rules: AppendRules, now_ms: int) -> str:
    if fault.timestamp is None:
        return (
            f"message without key in a compacted topic: the topic has cleanup.policy={rules.cleanup_policy}, "
            "so every record needs a key"
        )
    if header.uses_log_append_time and (rules.log_append_time or fault.timestamp == NO_TIMESTAMP):
        return CLAIMED
    return out_of_range(fault.timestamp, rules, now_ms)


def out_of_range(timestamp: int, rules: AppendRules, now_ms: int) -> str:
    earliest, latest = rules.timestamp_range(now_ms)
    if timestamp > latest:
        bound = f"the latest is {latest} (message.timestamp.after.max.ms={rules.timestamp_after_max_ms})"
    else:
        bound = f"the earliest is {earliest} (message.timestamp.before.max.ms={rules.timestamp_before_max_ms})"
    return f"timestamp {timestamp} is out of range: {bound}"
