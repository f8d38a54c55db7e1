"""What classic members carry inside their messages: subscriptions and assignments of the embedded consumer protocol."""

from ottla.broker.coordination.groups.consumer.assignments import Assignment, assignment_of
from ottla.broker.coordination.groups.consumer.topics import KnownTopics
from ottla.protocol import codec
from ottla.protocol.errors import MalformedMessage
from ottla.protocol.messages.consumer_protocol_assignment import ConsumerProtocolAssignment, TopicPartition
from ottla.protocol.messages.consumer_protocol_subscription import ConsumerProtocolSubscription

VERSION_BYTES = 2


def version_of(content: bytes) -> int:
    """Raises MalformedMessage if there is none. Newer versions begin like the newest that is known."""
    if len(content) < VERSION_BYTES:
        raise MalformedMessage("an embedded protocol message without a version")
    version = int.from_bytes(content[:VERSION_BYTES], "big", signed=True)
    if version < 0:
        raise MalformedMessage(f"version {version} of an embedded protocol message")
    return min(version, ConsumerProtocolSubscription.MAX_VERSION)


def read_subscription(metadata: bytes) -> ConsumerProtocolSubscription:
    subscription, _ = codec.decode_from(ConsumerProtocolSubscription, version_of(metadata), metadata, VERSION_BYTES)
    return subscription


def owned_by(subscription: ConsumerProtocolSubscription, topics: KnownTopics) -> Assignment:
    """What the member says it has. Members that give up everything before they join name nothing."""
    return assignment_of(
        (topics.by_name[owned.topic].topic_id, partition)
        for owned in subscription.owned_partitions
        if owned.topic in topics.by_name
        for partition in owned.partitions
    )


def read_assignment(content: bytes, topics: KnownTopics) -> Assignment:
    if not content:
        return {}
    found, _ = codec.decode_from(ConsumerProtocolAssignment, version_of(content), content, VERSION_BYTES)
    return assignment_of(
        (topics.by_name[topic.topic].topic_id, partition)
        for topic in found.assigned_partitions
        if topic.topic in topics.by_name
        for partition in topic.partitions
    )


def write_assignment(assignment: Assignment, topics: KnownTopics, version: int) -> bytes:
    """Topics that are gone have no name any more and are left out."""
    named = sorted(
        (topics.names[topic_id], partitions) for topic_id, partitions in assignment.items() if topic_id in topics.names
    )
    message = ConsumerProtocolAssignment(
        assigned_partitions=[TopicPartition(topic=name, partitions=sorted(numbers)) for name, numbers in named]
    )
    out = bytearray(version.to_bytes(VERSION_BYTES, "big"))
    codec.encode_into(out, message, version)
    return bytes(out)
