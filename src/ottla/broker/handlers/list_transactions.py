"""ListTransactions, key 66, versions 0 to 2.

Lists transactional ids by state, producer id, how long their transaction has been open (version 1) and a pattern of
the id (version 2; RE2, which takes linear time).
"""

from collections.abc import Callable

from ottla.broker.coordination.patterns import compile_pattern
from ottla.broker.handlers.common import access
from ottla.broker.handlers.context import Broker, Call
from ottla.model.errors import ApiError
from ottla.model.rights import Operation, Resource
from ottla.protocol.messages.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
    TransactionState,
)
from ottla.protocol.transaction_records import TransactionState as State
from ottla.protocol.transaction_records import TransactionValue

Filter = Callable[[str, TransactionValue], bool]
STATES = {state.word: state for state in State}


def handle(broker: Broker, call: Call, request: ListTransactionsRequest) -> ListTransactionsResponse:
    try:
        filters = _filters(request, broker.clock.now_ms())
        transactions = broker.transactions.list_transactions()
    except ApiError as error:
        return ListTransactionsResponse(error_code=error.code)
    return ListTransactionsResponse(
        unknown_state_filters=[word for word in request.state_filters if word not in STATES],
        transaction_states=[
            TransactionState(
                transactional_id=transactional_id, producer_id=value.producer_id, transaction_state=value.state.word
            )
            for transactional_id, value in transactions
            if all(wanted(transactional_id, value) for wanted in filters)
            and access.allowed(
                broker, call, Operation.DESCRIBE, Resource.TRANSACTIONAL_ID, transactional_id, probe=True
            )
        ],
    )


def _filters(request: ListTransactionsRequest, now_ms: int) -> list[Filter]:
    filters: list[Filter] = []
    if request.producer_id_filters:
        producer_ids = frozenset(request.producer_id_filters)
        filters.append(lambda _, value: value.producer_id in producer_ids)
    if request.state_filters:
        # Words that are no state match nothing; that they are unknown is told besides.
        states = {STATES[word] for word in request.state_filters if word in STATES}
        filters.append(lambda _, value: value.state in states)
    if request.duration_filter >= 0:
        filters.append(lambda _, value: now_ms - value.started_ms > request.duration_filter)
    if request.transactional_id_pattern:
        matches = compile_pattern(request.transactional_id_pattern)
        filters.append(lambda transactional_id, _: matches(transactional_id))
    return filters
