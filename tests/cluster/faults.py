"""What can go wrong with a cluster, by chance: each fault happens, lasts a while, and heals."""

import random
import threading
from collections.abc import Callable
from dataclasses import dataclass

from ottla.testing.cluster import RunningCluster
from ottla.testing.running import RunningBroker


@dataclass
class World:
    """What faults are done to, and the chance that chooses them. `topic` is one whose leaders make good victims."""

    cluster: RunningCluster
    chance: random.Random
    topic: str
    partitions: int

    def victim(self) -> RunningBroker:
        """Mostly any broker, often a leader of the topic, sometimes the controller."""
        fate = self.chance.random()
        if fate < 0.4:
            number = self.cluster.leader_of(self.topic, self.chance.randrange(self.partitions))
        elif fate < 0.55:
            number = self.cluster.controller_id()
        else:
            number = self.chance.choice(sorted(self.cluster.brokers))
        return self.cluster.brokers[number]

    def last(self, *choices: float) -> float:
        return self.chance.choice(choices)


def _stay_away(seconds: float) -> None:
    """The time for which something is to be broken: this is not waiting for anything."""
    threading.Event().wait(seconds)


def kill_broker(world: World) -> str:
    """SIGKILL, and back after a while, with what it has on disk."""
    victim, seconds = world.victim(), world.last(0.0, 0.5, 2.0, 5.0)
    victim.kill()
    _stay_away(seconds)
    victim.start()
    return f"{victim.data_dir.name} killed, away for {seconds:g} s"


def pause_broker(world: World) -> str:
    """SIGSTOP, at times for longer than its session."""
    victim, seconds = world.victim(), world.last(0.2, 1.0, 2.5, 4.5, 7.0)
    victim.pause()
    try:
        _stay_away(seconds)
    finally:
        victim.resume()
    return f"{victim.data_dir.name} paused for {seconds:g} s"


def stop_broker(world: World) -> str:
    """An orderly restart."""
    victim = world.victim()
    victim.restart()
    return f"{victim.data_dir.name} restarted in order"


def cut_links(world: World) -> str:
    """Two brokers do not hear each other, or one hears nobody."""
    links, seconds = world.cluster.links, world.last(0.5, 2.0, 5.0, 8.0)
    assert links is not None, "the soak runs with links that can be cut"
    one, other = world.chance.sample(sorted(world.cluster.brokers), 2)
    alone = world.chance.random() < 0.5
    if alone:
        links.cut_off(one)
    else:
        links.cut((one, other))
    try:
        _stay_away(seconds)
    finally:
        links.heal()
    return f"broker {one} cut off from {'all' if alone else f'broker {other}'} for {seconds:g} s"


def kill_zookeeper(world: World) -> str:
    """A member of the ensemble, the leader every other time."""
    ensemble, seconds = world.cluster.zookeeper, world.last(0.0, 1.0, 4.0)
    member = ensemble.wait_for_leader() if world.chance.random() < 0.5 else world.chance.choice(ensemble.members)
    member.kill()
    _stay_away(seconds)
    ensemble.start()
    return f"ZooKeeper {member.number} killed, away for {seconds:g} s"


def pause_zookeeper(world: World) -> str:
    """All of the ensemble: nobody can write metadata for a while, at times for longer than a session."""
    ensemble, seconds = world.cluster.zookeeper, world.last(0.5, 2.0, 5.0)
    ensemble.pause()
    try:
        _stay_away(seconds)
    finally:
        ensemble.resume()
    ensemble.start()
    return f"all of ZooKeeper paused for {seconds:g} s"


def kill_broker_and_zookeeper(world: World) -> str:
    """Both at once: the election of a leader waits for that of ZooKeeper."""
    ensemble, victim, seconds = world.cluster.zookeeper, world.victim(), world.last(0.5, 3.0)
    member = ensemble.wait_for_leader()
    victim.kill()
    member.kill()
    _stay_away(seconds)
    ensemble.start()
    victim.start()
    return f"{victim.data_dir.name} and ZooKeeper {member.number}, its leader, killed, away for {seconds:g} s"


Fault = Callable[[World], str]
"""Does it, heals it, and says in words what it was."""

FAULTS: dict[Fault, int] = {
    kill_broker: 8,
    pause_broker: 5,
    cut_links: 5,
    kill_zookeeper: 3,
    kill_broker_and_zookeeper: 1,
    pause_zookeeper: 1,
    stop_broker: 2,
}
"""With how many chances each comes."""


def choose(chance: random.Random) -> Fault:
    return chance.choices(list(FAULTS), weights=list(FAULTS.values()))[0]
