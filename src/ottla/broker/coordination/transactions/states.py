"""The states of a transactional id, and which may follow which.

Empty               no transaction was begun by this producer yet
Ongoing             partitions were added, records may be in them
PrepareCommit/Abort the outcome is decided and in the log; markers are being written to the partitions
CompleteCommit/Abort every partition has its marker; the next transaction may begin
Dead                the id expired and is being forgotten: a tombstone stands in the log
PrepareEpochFence   an open transaction is about to be aborted under a new epoch, because a new producer came or time
                    ran out. Kafka's coordinator passes through it in memory; here the decision is one step.
"""

from collections.abc import Mapping

from ottla.protocol.transaction_records import TransactionState

_S = TransactionState

MAY_FOLLOW: Mapping[TransactionState, frozenset[TransactionState]] = {
    _S.EMPTY: frozenset({_S.EMPTY, _S.COMPLETE_COMMIT, _S.COMPLETE_ABORT}),
    _S.ONGOING: frozenset({_S.ONGOING, _S.EMPTY, _S.COMPLETE_COMMIT, _S.COMPLETE_ABORT}),
    _S.PREPARE_COMMIT: frozenset({_S.ONGOING}),
    _S.PREPARE_ABORT: frozenset({_S.ONGOING, _S.PREPARE_EPOCH_FENCE, _S.EMPTY, _S.COMPLETE_COMMIT, _S.COMPLETE_ABORT}),
    _S.COMPLETE_COMMIT: frozenset({_S.PREPARE_COMMIT}),
    _S.COMPLETE_ABORT: frozenset({_S.PREPARE_ABORT}),
    _S.DEAD: frozenset({_S.EMPTY, _S.COMPLETE_COMMIT, _S.COMPLETE_ABORT}),
    _S.PREPARE_EPOCH_FENCE: frozenset({_S.ONGOING}),
}
"""For each state, those that it may come after."""

PREPARED = frozenset({_S.PREPARE_COMMIT, _S.PREPARE_ABORT})
COMPLETED = frozenset({_S.COMPLETE_COMMIT, _S.COMPLETE_ABORT})
AT_REST = frozenset({_S.EMPTY, _S.COMPLETE_COMMIT, _S.COMPLETE_ABORT})
"""No transaction is open: the id may begin one, or be forgotten."""


def may_follow(before: TransactionState, after: TransactionState) -> bool:
    return before in MAY_FOLLOW[after]
