"""What a group has committed, whichever protocol its members speak."""

from ottla.protocol.coordinator_records import OffsetCommitValue


class OffsetBook:
    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.offsets: dict[str, dict[int, OffsetCommitValue]] = {}

    # Called by replay alone

    def put_offset(self, topic: str, partition: int, value: OffsetCommitValue) -> None:
        offsets = self.offsets.get(topic)
        if offsets is None:
            offsets = self.offsets[topic] = {}
        offsets[partition] = value

    def drop_offset(self, topic: str, partition: int) -> None:
        offsets = self.offsets.get(topic)
        if offsets is not None:
            offsets.pop(partition, None)
            if not offsets:
                del self.offsets[topic]
