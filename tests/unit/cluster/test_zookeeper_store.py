"""Brokers that share a store in ZooKeeper: on the model in virtual time and on a real server."""

import asyncio
import itertools
from collections.abc import Callable, Mapping
from uuid import UUID

import pytest
from tests.simulation.zookeeper_tree import Tree
from tests.unit.cluster.building import a_broker, creation, deletion, state
from tests.unit.cluster.worlds import ModelWorld, World, until

from ottla.cluster.documents import broker_config_path, config_document, partition_path, topic_config_path, topic_path
from ottla.cluster.image import NO_CONTROLLER, ClusterImage, ImageChange
from ottla.cluster.store import ABSENT, CommitUncertain, NotController, Session, StoreError, VersionConflict, Write
from ottla.cluster.zookeeper import layout
from ottla.cluster.zookeeper import store as module
from ottla.cluster.zookeeper.client import ConnectionLost, Set
from ottla.cluster.zookeeper.following import ChangeLog
from ottla.cluster.zookeeper.loading import Found, _lay_over
from ottla.cluster.zookeeper.membership import BrokerIdTaken
from ottla.cluster.zookeeper.store import ZooKeeperStore


async def opened(world: World, name: str) -> ZooKeeperStore:
    return await ZooKeeperStore.open(world.client(name), 20)


async def closed(*stores: ZooKeeperStore) -> None:
    for store in stores:
        await store.close()


def sessions_of(store: ZooKeeperStore) -> list[Session]:
    seen: list[Session] = []
    store.on_session(seen.append)
    return seen


def documents(image: ClusterImage) -> tuple[object, ...]:
    """What of an image comes from documents: who runs and who is the controller is not told by the log."""
    return (
        image.cluster_id,
        image.topics,
        image.broker_configs,
        image.group_configs,
        image.entity_configs,
        image.acls,
        image.deleting,
    )


def test_all_see_the_same_pictures_in_the_same_order(world: World) -> None:
    async def scenario() -> None:
        stores = [await opened(world, name) for name in "abc"]
        pictures: list[list[tuple[object, ...]]] = [[] for _ in stores]

        def note(seen: list[tuple[object, ...]]) -> Callable[[ImageChange], None]:
            return lambda change: seen.append(documents(change.new))

        for store, seen in zip(stores, pictures, strict=True):
            store.subscribe(note(seen))

        async def work(store: ZooKeeperStore, name: str) -> None:
            await store.commit(creation(name, 2))
            for epoch in range(1, 6):
                await store.commit([state(store, name, epoch % 2, leader=epoch, epoch=epoch)])
                assert store.image.topics[name].partitions[epoch % 2].leader_epoch == epoch

        await asyncio.gather(*(work(store, f"of-{index}") for index, store in enumerate(stores)))
        await until(lambda: all(documents(store.image) == documents(stores[0].image) for store in stores))
        assert len(pictures[0]) == 18
        assert pictures[0] == pictures[1] == pictures[2]
        await closed(*stores)

    world.run(scenario())


def test_who_refreshes_finds_what_was_written_through_another_broker(world: World) -> None:
    async def scenario() -> None:
        writer, reader = await opened(world, "a"), await opened(world, "b")
        for number in range(20):
            await writer.commit(creation(f"topic-{number}"))
            await reader.refresh()
            assert f"topic-{number}" in reader.image.topics
        await closed(writer, reader)

    world.run(scenario())


def test_many_that_refresh_at_once_share_their_questions(
    model_world: ModelWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        store, other = await opened(model_world, "a"), await opened(model_world, "b")
        asked, sync = [], store._client.sync

        async def counted() -> None:
            asked.append(1)
            await sync()

        monkeypatch.setattr(store._client, "sync", counted)
        first = asyncio.gather(*(store.refresh() for _ in range(50)))
        await until(lambda: asked)
        await other.commit(creation("late"))
        await asyncio.gather(*(store.refresh() for _ in range(50)))
        assert "late" in store.image.topics  # the question that was under way may have come too early
        await first
        assert len(asked) == 2
        await closed(store, other)

    model_world.run(scenario())


def test_a_store_that_does_not_answer_is_not_waited_for(world: World) -> None:
    async def scenario() -> None:
        writer, reader = await opened(world, "a"), await opened(world, "b")
        world.swallow_answers("b")
        await writer.commit(creation("topic"))
        await reader.refresh()
        assert "topic" not in reader.image.topics
        world.cut("b")
        await until(lambda: reader.session is not Session.CONNECTED)
        await reader.refresh()
        await until(lambda: "topic" in reader.image.topics)
        await reader.refresh()
        await closed(writer, reader)

    world.run(scenario())


def test_a_store_that_is_away_for_a_moment_is_waited_for_when_something_is_to_be_changed(world: World) -> None:
    async def scenario() -> None:
        store = await opened(world, "a")
        seen: list[Session] = []
        store.on_session(seen.append)
        await store.connected(0.0)
        world.cut("a")
        await until(lambda: seen)
        await store.connected(0.0)
        assert seen == [Session.SUSPENDED], "it is waited for no longer than allowed"
        await store.connected(30.0)
        assert seen == [Session.SUSPENDED, Session.CONNECTED]
        await store.commit(creation("topic"))
        await closed(store)

    world.run(scenario())


def test_opening_begins_again_when_the_connection_breaks_meanwhile(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    breaks = iter([ConnectionLost("planted"), CommitUncertain("planted")])
    reload = ChangeLog.reload

    async def breaking(self: ChangeLog) -> None:
        for error in breaks:
            raise error
        await reload(self)

    async def scenario() -> None:
        monkeypatch.setattr(ChangeLog, "reload", breaking)
        store = await opened(world, "a")
        await store.commit(creation("topic"))
        await closed(store)

    world.run(scenario())
    assert next(breaks, None) is None


def test_whoever_is_too_late_finds_what_the_other_wrote(world: World) -> None:
    async def scenario() -> None:
        first, second = await opened(world, "a"), await opened(world, "b")
        path = broker_config_path("1")
        writes = (
            first.commit([Write(path, config_document({"by": "first"}), ABSENT)]),
            second.commit([Write(path, config_document({"by": "second"}), ABSENT), *creation("t")]),
        )
        results = await asyncio.gather(*writes, return_exceptions=True)
        lost = [index for index, result in enumerate(results) if isinstance(result, VersionConflict)]
        assert len(lost) == 1
        loser, winner = (first, second)[lost[0]], ("second", "first")[lost[0]]
        assert loser.image.broker_configs["1"] == {"by": winner}
        assert loser.version(path) == 0
        assert ("t" in loser.image.topics) == (winner == "second")
        await loser.commit([Write(path, config_document({"by": "both"}), loser.version(path))])
        await closed(first, second)

    world.run(scenario())


def test_a_change_by_hand_is_noticed_when_it_is_in_the_way(world: World) -> None:
    async def scenario() -> None:
        store = await opened(world, "a")
        path = broker_config_path("1")
        await store.commit([Write(path, config_document({"x": "1"}), ABSENT)])
        by_hand = world.client("hand")
        await by_hand.start(lambda event: None, 20)
        await by_hand.multi([Set(path, config_document({"x": "by hand"}))])
        with pytest.raises(VersionConflict):
            await store.commit([Write(path, config_document({"x": "2"}), 0)])
        assert store.image.broker_configs["1"] == {"x": "by hand"}
        await store.commit([Write(path, config_document({"x": "2"}), 1)])
        await by_hand.close()
        await closed(store)

    world.run(scenario())


def test_a_commit_whose_answer_is_lost_is_uncertain_and_then_seen(world: World) -> None:
    async def scenario() -> None:
        store, other = await opened(world, "a"), await opened(world, "b")
        seen = sessions_of(store)
        world.swallow_answers("a")
        commit = asyncio.ensure_future(store.commit(creation("t")))
        await until(lambda: "t" in other.image.topics)
        assert not commit.done()
        world.cut("a")
        with pytest.raises(CommitUncertain):
            await commit
        await until(lambda: store.session is Session.CONNECTED)
        assert seen == [Session.SUSPENDED, Session.CONNECTED]
        assert store.image.topics == other.image.topics
        with pytest.raises(VersionConflict):
            await store.commit(creation("t"))
        await closed(store, other)

    world.run(scenario())


def test_without_a_connection_commits_are_refused_and_afterwards_all_is_there(world: World) -> None:
    async def scenario() -> None:
        store, other = await opened(world, "a"), await opened(world, "b")
        refused: list[Exception | None] = []

        async def try_it() -> None:
            try:
                await store.commit(creation("never"))
            except StoreError as error:
                refused.append(error)

        tasks: list[asyncio.Task[None]] = []

        def on_session(session: Session) -> None:
            if session is Session.SUSPENDED:
                tasks.append(asyncio.ensure_future(try_it()))
            if session is Session.CONNECTED:
                # What was written while it was away is in the image when it is told that all is well.
                assert "meanwhile" in store.image.topics

        store.on_session(on_session)
        world.cut("a")
        await other.commit(creation("meanwhile"))
        await until(lambda: refused)
        await until(lambda: store.session is Session.CONNECTED)
        assert type(refused[0]) is StoreError
        assert "never" not in other.image.topics
        await closed(store, other)

    world.run(scenario())


def test_a_read_that_fails_while_there_is_no_connection_leaves_nothing_unread(model_world: ModelWorld) -> None:
    async def scenario() -> None:
        store, other = await opened(model_world, "a"), await opened(model_world, "b")
        failed: list[asyncio.Task[None]] = []

        def on_session(session: Session) -> None:
            if session is Session.SUSPENDED:
                failed.append(asyncio.ensure_future(store._changes.catch_up()))

        store.on_session(on_session)
        model_world.cut("a")
        await until(lambda: failed and store.session is Session.CONNECTED)
        with pytest.raises(ConnectionLost):
            await failed[0]
        await other.commit(creation("t"))
        await until(lambda: "t" in store.image.topics)
        await closed(store, other)

    model_world.run(scenario())


def test_an_older_change_does_not_overwrite_what_was_read_later() -> None:
    """As it would if somebody had written by hand: all else is in the log, and comes after."""
    read = {"/a": Found(b"new", 7, zxid=20), "/b": Found(b"old", 1, zxid=5)}
    change = layout.Change((("/a", b"older", 6), ("/b", b"newer", 2), ("/c", b"created", 0), ("/d", None, 1)))
    _lay_over(read, change, zxid=10)
    assert {path: found.data for path, found in read.items()} == {"/a": b"new", "/b": b"newer", "/c": b"created"}
    _lay_over(read, layout.Change((("/a", None, 8), ("/b", None, 3))), zxid=20)
    assert set(read) == {"/a", "/c"}


def test_one_is_elected_and_when_it_goes_another(world: World) -> None:
    async def scenario() -> None:
        stores = {number: await opened(world, str(number)) for number in (1, 2, 3)}
        for number, store in stores.items():
            await store.register_broker(a_broker(number))
            assert store.image.brokers[number].incarnation == f"directory-{number}"
        for expected_epoch in (1, 2, 3):
            await until(lambda: all(store.image.controller_id in stores for store in stores.values()))
            await until(lambda: all(set(store.image.brokers) == set(stores) for store in stores.values()))
            elected = next(iter(stores.values())).image
            assert elected.controller_epoch == expected_epoch
            assert {(s.image.controller_id, s.image.controller_epoch) for s in stores.values()} == {
                (elected.controller_id, expected_epoch)
            }
            for number, store in stores.items():
                if number == elected.controller_id:
                    await store.commit(creation(f"by-{number}"), as_controller=True)
                else:
                    with pytest.raises(NotController):
                        await store.commit(creation("x"), as_controller=True)
            await stores.pop(elected.controller_id).close()

    world.run(scenario())


def test_who_was_deposed_cannot_write_even_if_it_does_not_know(model_world: ModelWorld) -> None:
    async def scenario() -> None:
        first, second = await opened(model_world, "a"), await opened(model_world, "b")
        await first.register_broker(a_broker(1))
        await until(lambda: first.image.controller_id == 1)
        await second.register_broker(a_broker(2))
        # The first goes on believing: its process stands still, but a commit is on its way already.
        model_world.model.isolate("a")
        late = asyncio.ensure_future(first.commit(creation("late"), as_controller=True))
        await until(lambda: second.image.controller_id == 2, 60)
        model_world.model.heal("a")
        with pytest.raises((NotController, CommitUncertain)):
            await late
        await until(lambda: first.session is Session.CONNECTED and first.image.controller_id == 2)
        with pytest.raises(NotController):
            await first.commit(creation("late"), as_controller=True)
        assert "late" not in second.image.topics
        await closed(first, second)

    model_world.run(scenario())


def test_a_deposed_controllers_commit_fails_at_the_check(world: World) -> None:
    async def scenario() -> None:
        first, second = await opened(world, "a"), await opened(world, "b")
        await first.register_broker(a_broker(1))
        await until(lambda: first.image.controller_id == 1)
        believed = first._leadership
        await world.expire("a")
        await until(lambda: first.session is Session.CONNECTED and first.image.controller_epoch == 2)
        first._leadership = believed._replace(session=first._client.session_id)  # as if it had not heard
        with pytest.raises(NotController):
            await first.commit(creation("late"), as_controller=True)
        await until(lambda: first.image.controller_epoch == 2)
        await first.commit(creation("now"))
        await until(lambda: "now" in second.image.topics)
        assert "late" not in second.image.topics
        await closed(first, second)

    world.run(scenario())


def test_an_expired_broker_is_lost_and_comes_back_with_a_new_epoch(world: World) -> None:
    async def scenario() -> None:
        first, second = await opened(world, "a"), await opened(world, "b")
        await first.register_broker(a_broker(1))
        await until(lambda: first.image.controller_id == 1)
        await second.register_broker(a_broker(2))
        seen = sessions_of(first)
        at_lost: list[int] = []
        at_connected: list[tuple[bool, int]] = []

        def on_session(session: Session) -> None:
            if session is Session.LOST:
                at_lost.append(first.image.controller_id)
            if session is Session.CONNECTED:
                at_connected.append(("meanwhile" in first.image.topics, first.image.brokers[1].epoch))

        first.on_session(on_session)
        epoch = first.image.brokers[1].epoch
        alive_before_it_knew: list[ImageChange] = []
        first.subscribe(
            lambda change: (
                alive_before_it_knew.append(change)
                if 1 in change.new.brokers
                and change.new.brokers[1].epoch != epoch
                and "meanwhile" not in change.new.topics
                else None
            )
        )
        gone: list[bool] = []
        second.subscribe(lambda change: gone.append(1 not in change.new.brokers))
        await world.expire("a")
        await second.commit(creation("meanwhile"))
        await until(lambda: seen[-1:] == [Session.CONNECTED])
        assert seen == [Session.SUSPENDED, Session.LOST, Session.CONNECTED]
        ((saw_it, new_epoch),) = at_connected
        assert new_epoch > epoch
        if isinstance(world, ModelWorld):  # a real one may be back before the other has written
            assert saw_it
            assert not alive_before_it_knew
        await until(lambda: 1 in second.image.brokers and second.image.brokers[1].epoch == new_epoch)
        assert any(gone)
        await until(lambda: second.image.controller_id == first.image.controller_id != NO_CONTROLLER)
        await closed(first, second)

    world.run(scenario())


def test_a_controller_that_is_lost_says_so_at_once(model_world: ModelWorld) -> None:
    async def scenario() -> None:
        store = await opened(model_world, "a")
        await store.register_broker(a_broker(1))
        await until(lambda: store.image.controller_id == 1)
        controllers: list[int] = []
        store.subscribe(lambda change: controllers.append(change.new.controller_id))
        await model_world.expire("a")
        await until(lambda: store.image.controller_epoch == 2)
        assert controllers[0] == NO_CONTROLLER
        await closed(store)

    model_world.run(scenario())


def test_a_broker_that_comes_back_replaces_its_former_life(world: World) -> None:
    async def scenario() -> None:
        watcher = await opened(world, "w")
        former = await opened(world, "a")
        await former.register_broker(a_broker(1))
        await until(lambda: former.image.controller_id == 1)
        await until(lambda: 1 in watcher.image.brokers)
        missing: list[bool] = []
        watcher.subscribe(lambda change: missing.append(1 not in change.new.brokers))
        # The former process does nothing any more, but its session has not expired.
        former._follower.cancel()  # type: ignore[union-attr]
        latter = await opened(world, "b")
        before = latter.image.brokers[1].epoch
        await latter.register_broker(a_broker(1, port=9999))
        assert latter.image.brokers[1].epoch > before
        await until(lambda: watcher.image.brokers[1].endpoints[0].port == 9999)
        assert not any(missing)
        # It does not take its former life's office for its own: it was elected anew.
        await until(lambda: latter.image.controller_id == 1)
        assert latter.image.controller_epoch == 2
        await latter.commit(creation("t"), as_controller=True)
        await closed(latter, former, watcher)

    world.run(scenario())


def test_an_id_that_another_broker_has_is_refused_in_words(world: World) -> None:
    async def scenario() -> None:
        first, second = await opened(world, "a"), await opened(world, "b")
        await first.register_broker(a_broker(1, "one disk"))
        with pytest.raises(BrokerIdTaken, match=r"broker id 1 is taken by another broker, at 127\.0\.0\.1:9092"):
            await second.register_broker(a_broker(1, "another disk"))
        await closed(first, second)

    world.run(scenario())


def test_an_id_whose_broker_dies_is_waited_for(world: World) -> None:
    async def scenario() -> None:
        first, second = await opened(world, "a"), await opened(world, "b")
        await first.register_broker(a_broker(1, "one disk"))
        waiting = asyncio.ensure_future(second.register_broker(a_broker(1, "another disk")))
        await asyncio.sleep(world.timeout_ms / 10_000)
        assert not waiting.done()
        await first.close()
        await waiting
        assert second.image.brokers[1].incarnation == "another disk"
        await closed(second)

    world.run(scenario())


def test_a_broker_that_is_too_far_behind_reads_everything(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CHANGES_KEPT", 5)
    monkeypatch.setattr(module, "CHANGES_TRIMMED_AT_ONCE", 5)

    async def scenario() -> None:
        behind, ahead = await opened(world, "a"), await opened(world, "b")
        await ahead.register_broker(a_broker(2))
        await ahead.commit([*creation("kept", 2), *creation("changed", 2), *creation("removed", 2)])
        await until(lambda: "kept" in behind.image.topics and ahead.image.controller_id == 2)
        kept = behind.image.topics["kept"]
        changes: list[ImageChange] = []
        behind.subscribe(changes.append)
        behind._follower.cancel()  # type: ignore[union-attr]  # it stands still
        await ahead.commit(deletion(ahead, "removed"))
        for epoch in range(1, 30):
            await ahead.commit([state(ahead, "changed", 0, leader=2, epoch=epoch)])
        while len(await ahead._client.children(layout.CHANGES)) > 10:
            await ahead._client.sync()
        behind._follower = asyncio.create_task(behind._follow())
        await until(lambda: behind.image.topics == ahead.image.topics)
        (change,) = [change for change in changes if change.topics]
        assert [topic.name for topic in change.written] == ["changed"]
        assert [topic.name for topic in change.removed] == ["removed"]
        assert behind.image.topics["kept"] is kept
        # And it goes on from there.
        await behind.commit([state(behind, "changed", 1, leader=1, epoch=1)])
        await until(lambda: behind.image.topics == ahead.image.topics)
        await closed(behind, ahead)

    world.run(scenario())


def test_loading_while_others_write_gives_what_they_have(world: World) -> None:
    async def scenario() -> None:
        writer = await opened(world, "writer")
        await writer.commit([write for n in range(20) for write in creation(f"t{n}", 3)])
        done = False

        async def write() -> None:
            for turn in itertools.count(1):
                if done:
                    return
                name = f"t{turn % 20}"
                await writer.commit(deletion(writer, name))
                await writer.commit(creation(name, 1 + turn % 3))
                await writer.commit([state(writer, name, 0, leader=turn, epoch=turn)])

        writing = asyncio.ensure_future(write())
        readers = [await opened(world, f"reader-{n}") for n in range(8)]
        done = True
        await writing
        for reader in readers:
            await until(lambda reader=reader: documents(reader.image) == documents(writer.image))  # type: ignore[misc]
            for name, topic in writer.image.topics.items():
                assert reader.version(topic_path(name)) == writer.version(topic_path(name))
                for number in range(len(topic.partitions)):
                    path = partition_path(name, number)
                    assert reader.version(path) == writer.version(path)
        await closed(*readers, writer)

    world.run(scenario())


def test_a_topic_too_big_for_one_request_comes_and_goes_in_pieces(world: World) -> None:
    async def scenario() -> None:
        store, other = await opened(world, "a"), await opened(world, "b")
        counts: list[tuple[bool, int]] = []
        other.subscribe(
            lambda change: counts.append(
                (
                    "big" in change.new.topics,
                    sum(each.leader == 1 for topic in change.new.topics.values() for each in topic.partitions),
                )
            )
        )
        await store.commit(
            [*creation("big", 1200), Write(topic_config_path("big"), config_document({"x": "1"}), ABSENT)]
        )
        assert len(store.image.topics["big"].partitions) == 1200
        await until(lambda: other.image.topics == store.image.topics)
        assert [there for there, _ in counts] == [True] * len(counts)
        assert len(counts) >= 3
        counts.clear()
        await store.commit(deletion(store, "big"))
        assert not store.image.topics
        await until(lambda: other.version(topic_path("big")) == ABSENT)
        assert [there for there, _ in counts] == [False] * len(counts)
        again = await opened(world, "c")
        assert not again.image.topics
        assert not again.image.deleting
        await closed(store, other, again)

    world.run(scenario())


def test_a_late_write_for_a_deleted_topic_does_not_hit_its_successor(world: World) -> None:
    """The versions of the new topic's documents are those of the old one's: the id tells them apart."""

    async def scenario() -> None:
        late, other = await opened(world, "a"), await opened(world, "b")
        await other.commit([*creation("t", 2), Write(topic_config_path("t"), config_document({"x": "1"}), ABSENT)])
        await until(lambda: "t" in late.image.topics)
        late._follower.cancel()  # type: ignore[union-attr]  # it stands still
        old = late.image.topics["t"].topic_id
        await other.commit(deletion(other, "t"))
        await other.commit([*creation("t", 2), Write(topic_config_path("t"), config_document({"x": "2"}), ABSENT)])
        new = other.image.topics["t"]
        assert new.topic_id != old
        config = Write(topic_config_path("t"), config_document({"x": "late"}), 0)
        for write in (state(late, "t", 0, leader=9, epoch=9), config):
            assert write.expected == other.version(write.path) == 0
        with pytest.raises(VersionConflict):
            await late.commit([state(late, "t", 0, leader=9, epoch=9), config])
        assert late.image.topics["t"] == new
        await late.commit([state(late, "t", 0, leader=2, epoch=1)])
        await closed(late, other)

    world.run(scenario())


def test_settings_that_come_while_a_topic_goes_do_not_outlive_it(world: World) -> None:
    async def scenario() -> None:
        late, other = await opened(world, "a"), await opened(world, "b")
        await other.commit(creation("t", 2))
        await until(lambda: "t" in late.image.topics)
        late._follower.cancel()  # type: ignore[union-attr]  # it stands still
        await other.commit([Write(topic_config_path("t"), config_document({"x": "1"}), ABSENT)])
        with pytest.raises(VersionConflict, match="/config/topics/t has version 0, not -1"):
            await late.commit(deletion(late, "t"))
        assert late.image.topics["t"].configs == {"x": "1"}
        await late.commit(deletion(late, "t"))
        again = await opened(world, "c")
        assert again.version(topic_config_path("t")) == ABSENT
        await closed(late, other, again)

    world.run(scenario())


def test_a_document_too_large_for_zookeeper_is_refused_in_words(world: World) -> None:
    async def scenario() -> None:
        store = await opened(world, "a")
        with pytest.raises(StoreError, match="larger than ZooKeeper takes"):
            await store.commit([Write("/config/brokers/1", config_document({"x": "y" * 1_000_000}), ABSENT)])
        await store.commit([Write("/config/brokers/1", config_document({"x": "y" * 200_000}), ABSENT)])
        await closed(store)

    world.run(scenario())


def test_a_zookeeper_that_lost_its_data_is_not_believed(
    model_world: ModelWorld, caplog: pytest.LogCaptureFixture
) -> None:
    """Who takes over an empty picture deletes what it holds."""

    async def scenario() -> None:
        store = await opened(model_world, "a")
        await store.register_broker(a_broker(1))
        await store.commit(creation("kept", 3))
        seen = sessions_of(store)
        model_world.model.tree = Tree()
        await model_world.expire("a")
        fresh = await opened(model_world, "b")
        await until(lambda: "ZooKeeper does not know change" in caplog.text)
        assert len(store.image.topics["kept"].partitions) == 3
        assert seen == [Session.SUSPENDED, Session.LOST]
        assert not fresh.image.brokers
        with pytest.raises(StoreError):
            await store.commit(creation("t"))
        await closed(fresh, store)

    model_world.run(scenario())


class _Cut(Exception):
    """The process dies here."""


@pytest.mark.parametrize("pieces_done", range(1, 8))
def test_big_commits_may_be_cut_short_anywhere(model_world: ModelWorld, pieces_done: int) -> None:
    """Whatever was not written of a creation has no leader; whatever was not deleted is deleted by the controller."""

    async def scenario() -> None:
        dying, other = await opened(model_world, "a"), await opened(model_world, "b")
        left = pieces_done

        async def commit_piece(writes: list[Write], ids: Mapping[str, UUID], *, as_controller: bool) -> None:
            nonlocal left
            if left == 0:
                raise _Cut
            left -= 1
            await whole(writes, ids, as_controller=as_controller)

        whole = dying._commit_piece
        dying._commit_piece = commit_piece  # type: ignore[method-assign]
        try:
            await dying.commit(creation("big", 1200))
            await dying.commit(deletion(dying, "big"))
        except _Cut:
            pass
        await dying.close()
        await other.register_broker(a_broker(2))
        await until(lambda: other.image.controller_id == 2)
        await until(lambda: not other.image.deleting)
        if "big" in other.image.topics:  # the creation was cut short, or was complete and is not being undone yet
            states = other.image.topics["big"].partitions
            assert len(states) == 1200
            assert {(each.leader, each.leader_epoch, each.isr) for each in states} <= {(1, 0, (1,)), (-1, 0, ())}
            await other.commit(deletion(other, "big"))
        else:
            assert model_world.model.tree.find("/brokers/topics/big") is None
        await other.commit(creation("big", 2))
        again = await opened(model_world, "c")
        assert documents(again.image) == documents(other.image)
        await closed(again, other)

    model_world.run(scenario())
