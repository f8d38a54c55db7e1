"""Which transactions' records and markers a walk through the log may leave out. Pure; batches come in log order."""

from collections.abc import Sequence

from ottla.broker.storage.markers import ABORT, COMMIT
from ottla.broker.storage.transaction_index import AbortedTransaction


class TransactionWalk:
    def __init__(self, aborted: Sequence[AbortedTransaction]) -> None:
        self._waiting = sorted(aborted, key=lambda transaction: transaction.first_offset, reverse=True)
        self._aborted: dict[int, AbortedTransaction] = {}
        self._seen_aborted: set[int] = set()
        self._committed: set[int] = set()
        self.kept: list[AbortedTransaction] = []
        """Aborted transactions that had records on the way: their markers stay, and so must their index entries."""

    def is_aborted(self, producer_id: int, last_offset: int) -> bool:
        """Whether a transactional batch of data belongs to an aborted transaction."""
        self._begin_up_to(last_offset)
        if producer_id in self._aborted:
            self._seen_aborted.add(producer_id)
            return True
        self._committed.add(producer_id)
        return False

    def marker_ends_nothing(self, producer_id: int, last_offset: int, kind: int | None) -> bool:
        """Whether no record of the transaction that this marker ends is left, so that the marker may go in time.

        `kind` is that of the control record; None when it has been removed.
        """
        self._begin_up_to(last_offset)
        if kind is None:
            return True
        if kind == ABORT:
            transaction = self._aborted.pop(producer_id, None)
            seen = producer_id in self._seen_aborted
            self._seen_aborted.discard(producer_id)
            if transaction is None or not seen:
                return True
            self.kept.append(transaction)
            return False
        if kind == COMMIT:
            had_records = producer_id in self._committed
            self._committed.discard(producer_id)
            return not had_records
        return False

    def take_kept(self) -> list[AbortedTransaction]:
        kept, self.kept = self.kept, []
        return kept

    def _begin_up_to(self, offset: int) -> None:
        while self._waiting and self._waiting[-1].first_offset <= offset:
            transaction = self._waiting.pop()
            self._aborted.setdefault(transaction.producer_id, transaction)
