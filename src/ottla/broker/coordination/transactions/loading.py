"""Transactional ids from the log: the last record of each key counts, so only those are taken apart."""

import logging
from collections.abc import Iterable

from ottla.broker.coordination.transactions.machine import TransactionMachine
from ottla.protocol.errors import MalformedMessage
from ottla.protocol.records import decode_batch, iterate_batches
from ottla.protocol.transaction_records import decode_transaction_key, decode_transaction_value

logger = logging.getLogger(__name__)


class LoadedTransactions:
    """What a partition's log says."""

    def __init__(self, chunks: Iterable[bytes | memoryview] = ()) -> None:
        self.machine = TransactionMachine()
        self.foreign: dict[bytes, bytes] = {}
        """Records that are not ours to interpret, kept so that a snapshot can carry them on."""
        self.size_bytes = 0
        last: dict[bytes, bytes] = {}
        for chunk in chunks:
            for position, header in iterate_batches(chunk):
                self.size_bytes += header.size
                for record in () if header.is_control else decode_batch(chunk, position):
                    key = record.key or b""
                    if record.value is None:
                        last.pop(key, None)
                    else:
                        last[key] = record.value
        for key, value in last.items():
            self._replay(key, value)

    def _replay(self, key: bytes, value: bytes) -> None:
        try:
            transactional_id = decode_transaction_key(key)
            if transactional_id is not None:
                self.machine.replay(transactional_id, decode_transaction_value(value))
                return
        except MalformedMessage as error:
            logger.warning("Ignoring a record of __transaction_state that cannot be read: %s", error)
        self.foreign[key] = value
