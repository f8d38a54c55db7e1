"""Carries decisions about many partitions into the store, some hundred at a time.

Each piece is decided on the newest image and committed as a whole. Where someone else was quicker it is decided
again, so whatever is written follows from what was there.
"""

import asyncio
from collections.abc import Callable
from itertools import islice

from ottla.broker.controller import writes as documents
from ottla.broker.controller.holders import Place
from ottla.cluster.image import ClusterImage, PartitionImage
from ottla.cluster.store import MetadataStore, NotController, StoreError, VersionConflict
from ottla.model.clock import Clock

EXAMINED_AT_ONCE = 5_000
COMMITTED_AT_ONCE = documents.WRITES_AT_ONCE
LINES_LIKE_A_STATE = 10
"""A topic's document has a line for each of its partitions, and so many of them take the room of one state."""
PAUSE_SECONDS_MIN = 0.01
PAUSE_SECONDS_MAX = 1.0

Changed = dict[Place, PartitionImage]
Decide = Callable[[Place, PartitionImage, ClusterImage], PartitionImage | None]
"""What is to become of a partition of this image; None to leave it as it is."""


class Tally:
    """What was done and how long it took, for one line in the log."""

    def __init__(self) -> None:
        self.changed = self.commits = self.conflicts = 0
        self.deciding = self.committing = 0.0

    def __str__(self) -> str:
        again = f", {self.conflicts} decided again" if self.conflicts else ""
        return (
            f"decided in {1000 * self.deciding:.1f} ms, committed in {1000 * self.committing:.1f} ms "
            f"(commits: {self.commits}{again})"
        )


class PartitionChanges:
    """Works off a list of partitions. Whoever adds to `due` meanwhile has that decided as well."""

    def __init__(self, store: MetadataStore, clock: Clock, decide: Decide, *, as_controller: bool = False) -> None:
        self.due: dict[Place, None] = {}
        self._store = store
        self._clock = clock
        self._decide = decide
        self._as_controller = as_controller
        self.on_committed: Callable[[Changed, ClusterImage], None] | None = None
        """Told what was committed, with the image that it was decided on."""

    async def work_off(self, tally: Tally) -> None:
        """Return when nothing is due. StoreError, NotController: what was not written is due still."""
        size, pause = COMMITTED_AT_ONCE, PAUSE_SECONDS_MIN
        while self.due:
            image, begun = self._store.image, self._clock.monotonic()
            # From here to the commit nothing is awaited: the versions written against are those of this image.
            changed = self._decide_some(image, size)
            writes = documents.partition_writes(changed, image, self._store.version)
            tally.deciding += self._clock.monotonic() - begun
            if not writes:
                await asyncio.sleep(0)
                continue
            begun = self._clock.monotonic()
            try:
                await self._store.commit(writes, as_controller=self._as_controller)
            except VersionConflict:
                # Fewer at a time, so that those who were quicker hold up fewer others; and the picture that shows
                # what they wrote may still be on its way.
                self.due.update(dict.fromkeys(changed))
                tally.conflicts += 1
                size = max(1, size // 4)
                await asyncio.sleep(pause)
                pause = min(2 * pause, PAUSE_SECONDS_MAX)
                continue
            except (StoreError, NotController):
                self.due.update(dict.fromkeys(changed))
                raise
            finally:
                tally.committing += self._clock.monotonic() - begun
            tally.commits += 1
            tally.changed += len(changed)
            if self.on_committed is not None:
                self.on_committed(changed, image)
            size, pause = COMMITTED_AT_ONCE, PAUSE_SECONDS_MIN

    def _decide_some(self, image: ClusterImage, changed_max: int) -> Changed:
        """Take partitions off the list until enough of them are to change.

        Whatever happens to one of them from now on puts it on the list again, also while the commit is under way.
        """
        changed: Changed = {}
        rewritten: set[str] = set()
        room = changed_max
        for place in list(islice(self.due, EXAMINED_AT_ONCE)):
            del self.due[place]
            topic = image.topics.get(place[0])
            if topic is None or place[1] >= len(topic.partitions):
                continue
            before = topic.partitions[place[1]]
            after = self._decide(place, before, image)
            if after is None:
                continue
            changed[place] = after
            room -= 1
            if documents.is_held_otherwise(after, before) and topic.name not in rewritten:
                rewritten.add(topic.name)
                room -= 1 + len(topic.partitions) // LINES_LIKE_A_STATE
            if room <= 0:
                break
        return changed
