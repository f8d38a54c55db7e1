"""How long to wait so that no more bytes go by in a second than they may. Pure: time comes in."""

from collections.abc import Callable


class Pace:
    def __init__(self, bytes_per_second: float, clock: Callable[[], float]) -> None:
        self._rate = bytes_per_second
        self._clock = clock
        self._free_at = clock()

    def pause_s(self, size: int) -> float:
        """So many bytes have just come: the seconds until more may. Time in which nothing came is not saved up."""
        now = self._clock()
        self._free_at = max(self._free_at, now) + size / self._rate
        return self._free_at - now


def share(bytes_per_second: int | None, tasks: int) -> float | None:
    """What each of the tasks may use that run side by side."""
    return None if bytes_per_second is None else bytes_per_second / max(1, tasks)
