"""Which replica a consumer should read from. Pure.

The leader, unless the consumer says in which rack it is and an in-sync follower there, but not the leader, has what it
asks for. Of several the one that is furthest wins, then the one that caught up last.
"""

from collections.abc import Iterable
from typing import NamedTuple


class Candidate(NamedTuple):
    """An in-sync replica that the consumer could connect to."""

    broker_id: int
    rack: str | None
    start_offset: int
    end_offset: int
    caught_up_s: float
    """When it last had everything the leader had."""


def preferred_reader(
    client_rack: str, leader_rack: str | None, followers: Iterable[Candidate], offset: int
) -> int | None:
    """The broker to send the consumer to, or None when it should stay with the leader."""
    if not client_rack or client_rack == leader_rack:
        return None
    near = [
        follower
        for follower in followers
        if follower.rack == client_rack and follower.start_offset <= offset <= follower.end_offset
    ]
    if not near:
        return None
    return max(near, key=lambda follower: (follower.end_offset, follower.caught_up_s, follower.broker_id)).broker_id
