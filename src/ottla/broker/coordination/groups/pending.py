"""Offsets committed inside transactions, from their record to the marker that decides about them.

Several transactions may hold an offset of the same partition, and plain commits may come in between. What counts in the
end is the record that is last in the log among those that were committed, however late its marker comes; that is also
what compaction of the topic leaves. So a pending offset that a later record has overtaken is kept only as a promise
that something is pending, without a value.
"""

from typing import NamedTuple

from ottla.protocol.coordinator_records import OffsetCommitKey, OffsetCommitValue


class OpenTransaction(NamedTuple):
    first_offset: int
    """Where in the log its first record is."""
    epoch: int


class PendingOffsets:
    def __init__(self) -> None:
        self.open: dict[int, OpenTransaction] = {}
        """By producer: transactions with records here that have not ended."""
        self._offsets: dict[OffsetCommitKey, dict[int, OffsetCommitValue | None]] = {}
        """By key, in the order of the log: producer -> value, None once it has been overtaken."""
        self._keys: dict[int, dict[OffsetCommitKey, None]] = {}

    # Questions

    def __contains__(self, key: OffsetCommitKey) -> bool:
        return key in self._offsets

    def of_group(self, group_id: str) -> list[OffsetCommitKey]:
        return [key for key in self._offsets if key.group == group_id]

    def of_topic(self, topic: str) -> list[OffsetCommitKey]:
        return [key for key in self._offsets if key.topic == topic]

    def groups(self) -> set[str]:
        return {key.group for key in self._offsets}

    def values(self, key: OffsetCommitKey) -> list[tuple[int, OffsetCommitValue]]:
        """(producer, value) of what may still come to count, oldest first."""
        return [(producer, value) for producer, value in self._offsets.get(key, {}).items() if value is not None]

    def as_data(self) -> dict[OffsetCommitKey, list[tuple[int, OffsetCommitValue | None]]]:
        """All of it, in a form that can be compared."""
        return {key: list(producers.items()) for key, producers in self._offsets.items()}

    # Steps of replay

    def begin(self, producer_id: int, offset: int, epoch: int) -> None:
        """A batch of a transaction, the first or a further one."""
        opened = self.open.get(producer_id)
        self.open[producer_id] = OpenTransaction(offset if opened is None else opened.first_offset, epoch)

    def put(self, producer_id: int, key: OffsetCommitKey, value: OffsetCommitValue) -> None:
        producers = self._offsets.setdefault(key, {})
        producers.pop(producer_id, None)  # it moves to the end
        producers[producer_id] = value
        self._keys.setdefault(producer_id, {})[key] = None

    def overtake(self, key: OffsetCommitKey) -> None:
        """A plain commit of the same partition came later in the log."""
        producers = self._offsets.get(key)
        if producers is not None:
            for producer_id in producers:
                producers[producer_id] = None

    def forget(self, key: OffsetCommitKey) -> None:
        """The key was deleted, and what was pending for it with it."""
        for producer_id in self._offsets.pop(key, ()):
            del self._keys[producer_id][key]

    def end(self, producer_id: int, *, commit: bool) -> list[tuple[OffsetCommitKey, OffsetCommitValue]]:
        """The transaction is over: what is to be stored now."""
        self.open.pop(producer_id, None)
        stored = []
        for key in self._keys.pop(producer_id, ()):
            producers = self._offsets[key]
            if commit and (value := producers[producer_id]) is not None:
                stored.append((key, value))
                for earlier in producers:
                    if earlier == producer_id:
                        break
                    producers[earlier] = None
            del producers[producer_id]
            if not producers:
                del self._offsets[key]
        return stored
