"""The other brokers, as this one talks to them: followers fetch, coordinators send markers, all through this seam."""

from typing import Protocol, TypeVar

from ottla.model.errors import ApiError, ErrorCode
from ottla.protocol.schema import TopLevel

R = TypeVar("R", bound=TopLevel)

MAIN_LANE = "main"


class PeerUnavailable(ApiError):
    """The broker is not known, not reachable, or did not answer in time. Whether it got the request is unknown."""

    def __init__(self, broker_id: int, why: str) -> None:
        super().__init__(ErrorCode.NETWORK_EXCEPTION, f"broker {broker_id}: {why}")
        self.broker_id = broker_id


class Peers(Protocol):
    async def call(
        self,
        broker_id: int,
        request: TopLevel,
        answer: type[R],
        *,
        timeout_s: float,
        lane: str = MAIN_LANE,
        max_version: int | None = None,
    ) -> R:
        """Ask another broker; PeerUnavailable if no answer comes.

        Requests of one lane to one broker arrive in the order they were made, over one connection; a request that
        the other side keeps waiting holds up its lane only.
        """

    async def close(self) -> None: ...
