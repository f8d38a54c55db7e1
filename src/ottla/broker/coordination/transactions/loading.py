"""Transactional ids from the log: replay every record of a partition, oldest first."""

import logging
from collections.abc import Iterable

from ottla.broker.coordination.transactions.machine import TransactionMachine
from ottla.protocol.errors import MalformedMessage
from ottla.protocol.records import Record, decode_batch, iterate_batches
from ottla.protocol.transaction_records import decode_transaction_key, decode_transaction_value

logger = logging.getLogger(__name__)


class LoadedTransactions:
    """What a partition's log says."""

    def __init__(self, chunks: Iterable[bytes | memoryview] = ()) -> None:
        self.machine = TransactionMachine()
        self.foreign: dict[bytes, bytes] = {}
        """Records that are not ours to interpret, kept so that a snapshot can carry them on."""
        self.size_bytes = 0
        for chunk in chunks:
            for position, header in iterate_batches(chunk):
                self.size_bytes += header.size
                if not header.is_control:
                    for record in decode_batch(chunk, position):
                        self._replay(record)

    def _replay(self, record: Record) -> None:
        key = record.key or b""
        try:
            transactional_id = decode_transaction_key(key)
            if transactional_id is not None:
                value = None if record.value is None else decode_transaction_value(record.value)
                self.machine.replay(transactional_id, value)
                self.foreign.pop(key, None)
                return
        except MalformedMessage as error:
            logger.warning("record at offset %d of the transaction log is left aside: %s", record.offset, error)
        if record.value is None:
            self.foreign.pop(key, None)
        else:
            self.foreign[key] = record.value
