"""Where each leader epoch began in a log, so that a follower or client can tell which records it may keep."""

from bisect import bisect_right

from ottla.model.sentinels import NO_EPOCH, NO_OFFSET


class LeaderEpochs:
    """Entries (epoch, start offset), both rising. Pure; the log writes them to leader-epoch-checkpoint."""

    __slots__ = ("_epochs", "_starts", "latest")

    def __init__(self, entries: list[tuple[int, int]] | None = None) -> None:
        self._epochs = [epoch for epoch, _ in entries or ()]
        self._starts = [start for _, start in entries or ()]
        self.latest = NO_EPOCH
        self._update_latest()

    def entries(self) -> list[tuple[int, int]]:
        return list(zip(self._epochs, self._starts, strict=True))

    def assign(self, epoch: int, start_offset: int) -> bool:
        """Note that `epoch` begins at `start_offset`; says whether anything changed.

        Entries that contradict the new one were left by records that have since been cut off.
        """
        if epoch < 0:
            return False
        if self._epochs and epoch == self._epochs[-1] and start_offset >= self._starts[-1]:
            return False
        while self._epochs and (self._epochs[-1] >= epoch or self._starts[-1] >= start_offset):
            self._epochs.pop()
            self._starts.pop()
        self._epochs.append(epoch)
        self._starts.append(start_offset)
        self._update_latest()
        return True

    def confirm(self, epoch: int, offset: int) -> None:
        """A batch at `offset` says which epoch wrote it; entries that say otherwise were made for other records.

        After a crash of the machine the file with the entries may be newer than the records: what was cut off is there
        again, and what took its place is not.
        """
        if epoch >= 0 and self.epoch_at(offset) != epoch:
            self.truncate_end(offset)
            if self.latest != epoch:
                self.assign(epoch, offset)

    def end_offset(self, epoch: int, log_end: int) -> tuple[int, int]:
        """The largest epoch not above the asked one, and the offset at which it ended; (-1, -1) when unknown."""
        if epoch == NO_EPOCH:
            return NO_EPOCH, NO_OFFSET
        if epoch == self.latest:
            return epoch, log_end
        after = bisect_right(self._epochs, epoch)
        if after == len(self._epochs):
            return NO_EPOCH, NO_OFFSET
        return (self._epochs[after - 1] if after else epoch), self._starts[after]

    def epoch_at(self, offset: int) -> int:
        """The epoch that wrote the record at `offset`, or NO_EPOCH."""
        at = bisect_right(self._starts, offset)
        return self._epochs[at - 1] if at else NO_EPOCH

    def truncate_end(self, end_offset: int) -> bool:
        """Forget epochs that began at or after the new end of the log."""
        changed = False
        while self._starts and self._starts[-1] >= end_offset:
            self._epochs.pop()
            self._starts.pop()
            changed = True
        self._update_latest()
        return changed

    def truncate_start(self, start_offset: int) -> bool:
        """Forget epochs that ended before the new start; the one in force there now begins there."""
        covered = bisect_right(self._starts, start_offset)
        if covered == 0 or (covered == 1 and self._starts[0] == start_offset):
            return False
        del self._epochs[: covered - 1]
        del self._starts[: covered - 1]
        self._starts[0] = start_offset
        return True

    def _update_latest(self) -> None:
        self.latest = self._epochs[-1] if self._epochs else NO_EPOCH
