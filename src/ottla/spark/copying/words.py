"""What the two ends of a copy are called, and what is wrong when they do not fit. Pure."""

from collections.abc import Mapping
from enum import Enum
from uuid import UUID

from ottla.config.topic import PROMOTING
from ottla.model.names import TopicPartition

SETTING = "mirror.source"


def source_of(cluster_id: str, topic_id: UUID) -> str:
    """The value of the setting: which topic of which cluster the target's is a copy of."""
    return f"{cluster_id}/{topic_id}"


def is_copy_from(setting: str, cluster_id: str) -> bool:
    """Whether a topic with this setting has come from the cluster: then it does not go back there."""
    return setting.removeprefix(PROMOTING).rpartition("/")[0] == cluster_id if setting else False


class Fits(Enum):
    YES = "it is the copy of this topic"
    TAKE = "nobody has written to it, so it can become the copy"
    MADE_AGAIN = "it is the copy of a topic that was deleted since"
    OWN = "it has records of its own"
    OTHER = "it is the copy of another topic"
    PROMOTING = "it is being promoted"


def fits(setting: str, source: str, *, is_empty: bool) -> Fits:
    """What a topic of the target is, by its setting, for a copy of this source."""
    if setting == source:
        return Fits.YES
    if not setting:
        return Fits.TAKE if is_empty else Fits.OWN
    if setting.startswith(PROMOTING):
        return Fits.PROMOTING
    same_cluster = setting.rpartition("/")[0] == source.rpartition("/")[0]
    return Fits.MADE_AGAIN if same_cluster else Fits.OTHER


def refusal(topic: str, found: Fits, setting: str) -> str:
    words = {
        Fits.OWN: f"the target's topic `{topic}` {Fits.OWN.value}: it was promoted, or was never a mirror. To copy to "
        "it again, delete it there first",
        Fits.OTHER: f"the target's topic `{topic}` is the copy of another one ({SETTING}={setting})",
        Fits.PROMOTING: f"the target's topic `{topic}` is being promoted: finish it with `ottla mirror promote`",
    }
    return words[found]


def truncated(noted: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
    """Partitions of the source that end, in the epoch of their last copied record, before that record."""
    return {at: ends[at] for at, copied in sorted(noted.items()) if at in ends and 0 <= ends[at] < copied}
