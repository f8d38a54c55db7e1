"""Whether a leader may go on while the metadata store does not answer. Pure.

The store declares a silent broker dead after its session timeout, and then the controller makes another in-sync replica
the leader. That one fetches no more from the old leader. So as long as every other in-sync replica has fetched, as a
follower of this very epoch, within the last session timeout, nobody else leads; and a leader that is alone in sync
cannot be replaced without losing data, which nobody does.
"""

from collections.abc import Iterable, Mapping


def may_go_on(me: int, in_sync: Iterable[int], fetched_s: Mapping[int, float], now_s: float, timeout_s: float) -> bool:
    """`fetched_s` has when each follower fetched last, if it did in this epoch."""
    return all(
        replica == me or now_s - fetched_s.get(replica, float("-inf")) <= timeout_s for replica in in_sync
    )  # fmt: skip
