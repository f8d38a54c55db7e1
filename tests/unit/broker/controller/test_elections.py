"""Who leads: the rules of epochs and in-sync replicas, whatever happens to a partition."""

from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from ottla.broker.controller.elections import elect, elect_preferred, hand_over, new_partition, rejoin
from ottla.broker.controller.reassignments import begin, cancel, is_moving, next_state
from ottla.cluster.image import NO_LEADER, PartitionImage, dead_or_lagging
from ottla.model.errors import ApiError

BROKERS = range(1, 6)
SOME = st.sets(st.sampled_from(list(BROKERS)))


def led(leader: int, replicas: tuple[int, ...] = (1, 2, 3), isr: tuple[int, ...] = (1, 2, 3)) -> PartitionImage:
    return PartitionImage(leader, 7, replicas, isr)


def test_the_first_in_sync_replica_alive_leads() -> None:
    assert elect(led(1), {2, 3}) == PartitionImage(2, 8, (1, 2, 3), (2, 3))
    assert elect(led(1, isr=(1, 3)), {2, 3}) == PartitionImage(3, 8, (1, 2, 3), (3,))


def test_a_dead_follower_leaves_without_a_new_epoch() -> None:
    assert elect(led(1), {1, 3}) == PartitionImage(1, 7, (1, 2, 3), (1, 3))
    assert elect(led(1), {1, 2, 3}) is None


def test_without_in_sync_replicas_alive_nobody_leads_and_they_are_remembered() -> None:
    alone = elect(led(1, isr=(1,)), {2, 3})
    assert alone == PartitionImage(NO_LEADER, 8, (1, 2, 3), (1,))
    assert elect(alone, {2, 3}) is None
    assert elect(alone, {1, 2, 3}) == PartitionImage(1, 9, (1, 2, 3), (1,))


def test_the_dead_stay_in_sync_where_fewer_than_the_floor_were_left() -> None:
    """They have everything that is committed: while fewer are alive nothing more is."""
    assert elect(led(1), {1, 3}, floor=2) == PartitionImage(1, 7, (1, 2, 3), (1, 3))
    assert elect(led(1), {1}, floor=2) is None
    assert elect(led(1, isr=(1, 2)), {2, 3}, floor=2) == PartitionImage(2, 8, (1, 2, 3), (1, 2))
    assert elect(PartitionImage(1, 7, (1, 2), (1, 2)), {1}, floor=3) is None
    assert elect(PartitionImage(1, 7, (1,), (1,)), {1}, floor=2) is None


def test_who_is_late_is_told_by_the_leader_that_knows() -> None:
    late = PartitionImage(1, 7, (1, 2, 3), (1, 2), late=(2,))
    assert elect(late, {1, 2}, floor=2) is None
    assert elect(late, {2, 3}, floor=2) == PartitionImage(2, 8, (1, 2, 3), (1, 2)), "the next one finds out itself"


def test_nobody_counts_on_the_dead_and_the_late() -> None:
    assert dead_or_lagging(led(1), {1, 2, 3}) == []
    assert dead_or_lagging(led(1), {1, 3}) == [2]
    assert dead_or_lagging(PartitionImage(1, 7, (1, 2, 3), (1, 2), late=(2, 3)), {1, 2, 3}) == [2]
    assert dead_or_lagging(PartitionImage(1, 7, (1, 2, 3), (1, 2), late=(2,)), {2, 3}) == [], (
        "nobody leads: all of them may"
    )


def test_who_stops_stays_in_sync_where_fewer_than_the_floor_were_left() -> None:
    assert hand_over(led(1), 1, {1, 2, 3}, floor=2) == PartitionImage(2, 8, (1, 2, 3), (2, 3))
    assert hand_over(led(1, isr=(1, 2)), 1, {1, 2, 3}, floor=2) == PartitionImage(2, 8, (1, 2, 3), (1, 2))
    assert hand_over(led(2, isr=(1, 2)), 1, {1, 2, 3}, floor=2) is None


def test_an_unclean_election_takes_who_is_there_and_new_ones_last() -> None:
    assert elect(led(1, isr=(1,)), {2, 3}, unclean=True) == PartitionImage(2, 8, (1, 2, 3), (2,))
    moving = PartitionImage(1, 7, (4, 2, 1), (1,), adding=(4,), removing=(1,))
    chosen = elect(moving, {2, 4}, unclean=True)
    assert chosen is not None
    assert (chosen.leader, chosen.isr) == (2, (2,))
    assert elect(led(1, isr=(1,)), (), unclean=True) == PartitionImage(NO_LEADER, 8, (1, 2, 3), (1,))


def test_a_partition_that_never_had_a_leader_gets_one() -> None:
    assert new_partition((1, 2, 3), {2, 3}) == PartitionImage(2, 0, (1, 2, 3), (2, 3))
    fresh = PartitionImage(NO_LEADER, 0, (1, 2), ())
    assert elect(fresh, {1, 2}) == PartitionImage(1, 0, (1, 2), (1, 2))
    assert elect(fresh, {3}) is None


def test_who_is_no_replica_any_more_neither_leads_nor_counts() -> None:
    """The document of the topic is written before the states of partitions when a commit is too large for one."""
    cut_short = PartitionImage(1, 7, (4, 5), (1, 4, 5))
    assert elect(cut_short, {1, 4, 5}) == PartitionImage(4, 8, (4, 5), (4, 5))
    assert elect(cut_short, {1}) == PartitionImage(NO_LEADER, 8, (4, 5), (4, 5))
    assert elect(led(4, (4, 5), (1, 4, 5)), {1, 4, 5}) == PartitionImage(4, 7, (4, 5), (4, 5))
    assert hand_over(led(4, (4, 5), (1, 4)), 4, {1, 4, 5}) is None


def test_the_preferred_replica_leads_only_if_it_can() -> None:
    assert elect_preferred(led(2), {1, 2, 3}) == PartitionImage(1, 8, (1, 2, 3), (1, 2, 3))
    assert elect_preferred(led(1), {1, 2, 3}) is None
    assert elect_preferred(led(2), {2, 3}) is None
    assert elect_preferred(led(2, isr=(2, 3)), {1, 2, 3}) is None


def test_who_stops_hands_over() -> None:
    assert hand_over(led(1), 1, {1, 2, 3}) == PartitionImage(2, 8, (1, 2, 3), (2, 3))
    assert hand_over(led(1), 3, {1, 2, 3}) == PartitionImage(1, 7, (1, 2, 3), (1, 2))
    assert hand_over(led(1), 1, {1}) is None
    assert hand_over(led(1, isr=(1,)), 1, {1, 2, 3}) is None
    assert hand_over(led(1, isr=(1, 2)), 3, {1, 2, 3}) is None


def test_who_lost_its_tail_does_not_count_as_in_sync() -> None:
    assert rejoin(led(1), 1) == PartitionImage(NO_LEADER, 8, (1, 2, 3), (2, 3))
    assert rejoin(led(1), 2) == PartitionImage(1, 8, (1, 2, 3), (1, 3))
    assert rejoin(led(1, isr=(1,)), 1) == PartitionImage(1, 8, (1, 2, 3), (1,))
    assert rejoin(led(NO_LEADER, isr=(1,)), 1) == PartitionImage(NO_LEADER, 8, (1, 2, 3), (1,))
    assert rejoin(led(1, isr=(1,)), 2) == PartitionImage(1, 8, (1, 2, 3), (1,))
    assert rejoin(led(NO_LEADER, isr=()), 2) is None
    assert rejoin(led(1), 4) is None


def keeps_the_rules(before: PartitionImage, after: PartitionImage) -> None:
    assert set(after.isr) <= set(after.replicas)
    assert len(set(after.isr)) == len(after.isr)
    assert after.isr or not before.isr
    assert after.leader == NO_LEADER or after.leader in after.isr
    assert set(after.adding) | set(after.removing) <= set(after.replicas)
    assert not set(after.adding) & set(after.removing)
    first = not before.isr
    if after.leader != before.leader and not first:
        assert after.leader_epoch == before.leader_epoch + 1
    else:
        assert after.leader_epoch == before.leader_epoch


@given(replicas=st.permutations(list(BROKERS)), size=st.integers(1, 5), alive=SOME, unclean=st.booleans())
def test_settling_twice_changes_nothing_more(replicas: list[int], size: int, alive: set[int], unclean: bool) -> None:
    partition = new_partition(tuple(replicas[:size]), set(BROKERS))
    settled = next_state(partition, alive, unclean=unclean) or partition
    assert next_state(settled, alive, unclean=unclean) is None


class PartitionLife(RuleBasedStateMachine):
    """Brokers come and go, the leader shrinks and grows its in-sync replicas, moves begin, change and end."""

    @initialize(replicas=st.permutations(list(BROKERS)), size=st.integers(1, 4))
    def create(self, replicas: list[int], size: int) -> None:
        self.alive = set(BROKERS)
        self.partition = new_partition(tuple(replicas[:size]), self.alive)

    def become(self, after: PartitionImage | None) -> None:
        if after is not None:
            keeps_the_rules(self.partition, after)
            self.partition = after

    @rule(broker=st.sampled_from(list(BROKERS)), unclean=st.booleans())
    def broker_dies(self, broker: int, unclean: bool) -> None:
        self.alive.discard(broker)
        self.become(next_state(self.partition, self.alive, unclean=unclean))

    @rule(broker=st.sampled_from(list(BROKERS)))
    def broker_returns(self, broker: int) -> None:
        self.alive.add(broker)
        self.become(next_state(self.partition, self.alive))

    @rule(broker=st.sampled_from(list(BROKERS)))
    def broker_stops(self, broker: int) -> None:
        if broker in self.alive:
            self.become(hand_over(self.partition, broker, self.alive))
            self.alive.discard(broker)
            self.become(next_state(self.partition, self.alive))

    @rule(broker=st.sampled_from(list(BROKERS)))
    def machine_crashes_and_returns(self, broker: int) -> None:
        self.alive.discard(broker)
        after = rejoin(self.partition, broker)
        if after is not None:
            assert after.isr
            assert after.leader_epoch == self.partition.leader_epoch + 1
            self.partition = after
        self.become(next_state(self.partition, self.alive))
        self.alive.add(broker)
        self.become(next_state(self.partition, self.alive))

    @rule()
    def leader_takes_in_all(self) -> None:
        if self.partition.leader in self.alive:
            isr = tuple(replica for replica in self.partition.replicas if replica in self.alive)
            self.partition = PartitionImage(
                self.partition.leader, self.partition.leader_epoch, self.partition.replicas, isr,
                self.partition.adding, self.partition.removing,
            )  # fmt: skip
            self.become(next_state(self.partition, self.alive))

    @rule()
    def prefer(self) -> None:
        self.become(elect_preferred(self.partition, self.alive))

    @rule(brokers=st.permutations(list(BROKERS)), size=st.integers(1, 5))
    def move(self, brokers: list[int], size: int) -> None:
        self.become(begin(self.partition, tuple(brokers[:size]), self.alive))
        self.become(next_state(self.partition, self.alive))

    @rule()
    def cancel_the_move(self) -> None:
        try:
            self.become(cancel(self.partition, self.alive))
        except ApiError:
            assert not is_moving(self.partition) or set(self.partition.isr) <= set(self.partition.adding)

    @invariant()
    def leads_if_it_can(self) -> None:
        if hasattr(self, "partition") and set(self.partition.isr) & self.alive:
            assert self.partition.leader in self.alive


TestPartitionLife = PartitionLife.TestCase
