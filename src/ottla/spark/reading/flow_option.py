"""The option by which a read belongs to a mirror's flow: whether it pauses, how fast it may go, and where batches are
copied to as they are (`ottla.spark.copying`); apart, because few need the rest."""

from collections.abc import Mapping
from pathlib import Path

import msgspec

OPTION = "mirrorFlow"


class CopyTo(msgspec.Struct, frozen=True, kw_only=True):
    """A cluster that batches go to with their offsets."""

    target: dict[str, str]
    """Settings of its client."""
    source_id: str
    """The id of the cluster that is read."""
    positions: str
    """The group of the target in which it is noted how far the copies are, with the source's leader epochs."""
    replication_factor: int | None = None
    clear_on_loss: bool = False
    """Whether a topic is made anew in the target when the source's is another by now; otherwise that is an error."""
    own_settings: tuple[str, ...] | None = None
    """What a topic that is made in the target does not get of the source's settings; None for all of them."""


class FlowOption(msgspec.Struct, frozen=True, kw_only=True):
    paused: str | None = None
    """As long as this file is there, nothing is read."""
    bytes_per_second: int | None = None
    copy_to: CopyTo | None = None

    @property
    def is_paused(self) -> bool:
        return self.paused is not None and Path(self.paused).exists()


NO_FLOW = FlowOption()


def written(flow: FlowOption) -> dict[str, str]:
    """The option, for who makes a read."""
    return {OPTION: msgspec.json.encode(flow).decode()}


def taken(options: Mapping[str, str]) -> tuple[dict[str, str], FlowOption]:
    """The other options, and what this one says."""
    rest = {name: value for name, value in options.items() if name.lower() != OPTION.lower()}
    given = [value for name, value in options.items() if name.lower() == OPTION.lower()]
    return rest, msgspec.json.decode(given[0], type=FlowOption) if given else NO_FLOW
