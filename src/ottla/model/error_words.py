"""Error codes as sentences, for brokers that send a code and nothing else."""

from ottla.model.errors import ApiError, ErrorCode

WORDS: dict[ErrorCode, str] = {
    ErrorCode.UNKNOWN_SERVER_ERROR: "the broker failed in a way it did not expect; its log says more",
    ErrorCode.OFFSET_OUT_OF_RANGE: "the partition does not have that offset",
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "there is no such topic or partition",
    ErrorCode.UNKNOWN_TOPIC_ID: "there is no topic with that id",
    ErrorCode.LEADER_NOT_AVAILABLE: "the partition has no leader now",
    ErrorCode.NOT_LEADER_OR_FOLLOWER: "the partition's leader is moving; try again",
    ErrorCode.REQUEST_TIMED_OUT: "the broker could not finish in time; it may still do it",
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: "the group's coordinator is still loading; try again",
    ErrorCode.COORDINATOR_NOT_AVAILABLE: "no broker coordinates this group now",
    ErrorCode.NOT_COORDINATOR: "the group's coordinator is moving; try again",
    ErrorCode.INVALID_TOPIC_EXCEPTION: "that is not a name a topic can have",
    ErrorCode.INVALID_GROUP_ID: "that is not a name a group can have",
    ErrorCode.UNKNOWN_MEMBER_ID: "the group has members: stop its consumers first",
    ErrorCode.REBALANCE_IN_PROGRESS: "the group is rebalancing: stop its consumers first",
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: "you may not do that with this topic",
    ErrorCode.GROUP_AUTHORIZATION_FAILED: "you may not do that with this group",
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "you may not do that with this cluster",
    ErrorCode.UNSUPPORTED_VERSION: "the broker does not support that",
    ErrorCode.TOPIC_ALREADY_EXISTS: "the topic exists already",
    ErrorCode.POLICY_VIOLATION: "a policy of the cluster forbids it",
    ErrorCode.LOG_DIR_NOT_FOUND: "the broker has no such directory among its log.dirs",
    ErrorCode.REPLICA_NOT_AVAILABLE: "the broker does not have this replica",
    ErrorCode.KAFKA_STORAGE_ERROR: "the broker's disk failed it; its log says more",
    ErrorCode.NON_EMPTY_GROUP: "the group has members: stop its consumers first",
    ErrorCode.GROUP_ID_NOT_FOUND: "there is no such group",
    ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC: "the group's consumers are subscribed to this topic: stop them first",
    ErrorCode.TOPIC_DELETION_DISABLED: "the brokers run with delete.topic.enable=false",
}


def in_words(error: ApiError | ErrorCode) -> str:
    """What the broker said, or else what its error code means."""
    if isinstance(error, ApiError):
        return error.message or in_words(error.code)
    return WORDS.get(error, error.name.lower().replace("_", " "))
