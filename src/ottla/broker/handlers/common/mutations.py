"""The quota for creating and deleting partitions, as a handler meets it."""

from ottla.broker.handlers.context import Broker, Call
from ottla.broker.quotas.mutations import MutationCharge

NEVER_REFUSED = 2**15
"""No version of the request is: it is done, and its client waits afterwards."""


def charge_for(broker: Broker, call: Call, *, refused_from: int = NEVER_REFUSED) -> MutationCharge | None:
    """What to charge the partitions of this request to; None when no quota counts for its client."""

    def now_ms() -> int:
        return int(broker.clock.monotonic() * 1000)

    if broker.quotas.mutations is None:
        return None
    budget = broker.quotas.mutations.of(call.session.entity, now_ms())
    return None if budget is None else MutationCharge(budget, now_ms, strict=call.version >= refused_from)


def throttle(call: Call, charge: MutationCharge | None) -> None:
    """The client has to be left alone for as long as its work has cost it."""
    if charge is not None:
        call.throttle(charge.wait_ms)
