"""Whether a consumer should read from another replica than the leader that it asks (KIP-392)."""

from ottla.broker.handlers.context import Broker, Call
from ottla.broker.handlers.fetching.packing import NO_REPLICA
from ottla.broker.replication.partition import Partition
from ottla.broker.replication.read_replica import Candidate, preferred_reader
from ottla.config.replication import RACK_AWARE_SELECTOR


def preferred_replica(broker: Broker, call: Call, partition: Partition, client_rack: str, offset: int) -> int:
    """The follower that the consumer should go to, or NO_REPLICA."""
    progress = partition.progress
    if progress is None or len(partition.isr) < 2 or broker.settings.replica_selector_class != RACK_AWARE_SELECTOR:
        return NO_REPLICA
    brokers = broker.metadata.image.brokers
    followers = []
    for replica in partition.isr:
        follower, known = progress.follower(replica), brokers.get(replica)
        if follower is not None and known is not None and known.endpoint(call.session.listener) is not None:
            followers.append(
                Candidate(replica, known.rack, follower.start_offset, follower.end_offset, follower.caught_up_s)
            )
    chosen = preferred_reader(client_rack, broker.settings.broker_rack, followers, offset)
    return NO_REPLICA if chosen is None else chosen
