"""What the seam promises, kept by the model and by kazoo with a real server alike."""

import asyncio

import pytest
from tests.unit.cluster.worlds import World, until

from ottla.cluster.zookeeper.client import (
    BadVersion,
    Check,
    ConnectionLost,
    Create,
    Delete,
    NodeExists,
    NoNode,
    NotEmpty,
    SessionEvent,
    Set,
    Stat,
    ZooKeeperClient,
)


async def started(world: World, name: str = "a", chroot: str = "") -> tuple[ZooKeeperClient, list[SessionEvent]]:
    events: list[SessionEvent] = []
    client = world.client(name, chroot=chroot)
    await client.start(events.append, 20)
    return client, events


def test_nodes_have_versions_and_zxids(world: World) -> None:
    async def scenario() -> None:
        client, _ = await started(world)
        assert await client.multi([Create("/a", b"1"), Create("/a/b", b"2")]) == ["/a", "/a/b"]
        data, stat = await client.get("/a")
        assert (data, stat.version, stat.owner) == (b"1", 0, 0)
        assert stat.created == stat.modified == (await client.get("/a/b"))[1].created
        (written,) = await client.multi([Set("/a", b"3", 0)])
        assert isinstance(written, Stat)
        assert written.version == 1
        assert written.modified > written.created == stat.created
        assert await client.get("/a") == (b"3", written)
        assert await client.exists("/a") == written
        assert await client.exists("/nothing") is None
        assert await client.children("/a") == ["b"]
        assert written.children == 1
        many = await client.get_many(["/a/b", "/nothing", "/a", "/a"])
        assert many == [await client.get("/a/b"), None, (b"3", written), (b"3", written)]
        assert await client.get_many([]) == []
        for missing in (client.get("/nothing"), client.children("/nothing")):
            with pytest.raises(NoNode):
                await missing
        await client.sync()
        await client.close()

    world.run(scenario())


def test_a_multi_is_done_as_a_whole_or_not_at_all(world: World) -> None:
    async def scenario() -> None:
        client, _ = await started(world)
        await client.multi([Create("/a", b""), Create("/c-", b"", sequential=True)])
        for wrong, error in (
            (Create("/a", b""), NodeExists),
            (Create("/x/y", b""), NoNode),
            (Set("/a", b"", 7), BadVersion),
            (Set("/b/none", b"", 0), NoNode),
            (Delete("/a", 1), BadVersion),
            (Check("/a", 5), BadVersion),
            (Delete("/nope"), NoNode),
        ):
            with pytest.raises(error) as caught:
                await client.multi([Create("/b", b""), Create("/c-", b"", sequential=True), wrong, Delete("/a")])
            assert (caught.value.index, caught.value.path) == (2, wrong.path)
            assert await client.exists("/b") is None
        with pytest.raises(NotEmpty):
            await client.multi([Create("/a/b", b""), Delete("/a")])
        assert sorted(await client.children("/")) == ["a", "c-0000000001"]
        # What failed has used up no number.
        assert await client.multi([Check("/a", 0), Create("/c-", b"", sequential=True)]) == [None, "/c-0000000002"]
        assert await client.multi([Delete("/c-0000000002"), Create("/c-", b"", sequential=True)]) == [
            None,
            "/c-0000000003",
        ]
        await client.close()

    world.run(scenario())


def test_watches_speak_once_and_before_the_news(world: World) -> None:
    async def scenario() -> None:
        client, _ = await started(world)
        other, _ = await started(world, "b")
        said: list[str] = []
        await client.multi([Create("/a", b"")])
        await client.get("/a", lambda: said.append("data"))
        await client.children("/a", lambda: said.append("children"))
        await client.exists("/later", lambda: said.append("later"))
        with pytest.raises(NoNode):
            await client.get("/never", lambda: said.append("never"))
        await other.multi([Create("/a/b", b"")])
        await client.sync()
        assert await client.children("/a") == ["b"]
        assert said == ["children"]
        await other.multi([Set("/a", b"1"), Create("/later", b""), Create("/never", b""), Create("/a/c", b"")])
        await client.sync()
        assert (await client.get("/a"))[0] == b"1"
        assert sorted(said) == ["children", "data", "later"]
        await other.multi([Set("/a", b"2")])
        await client.sync()
        assert len(said) == 3
        await client.children("/a/b", lambda: said.append("gone"))
        await other.multi([Delete("/a/b")])
        await until(lambda: said[3:] == ["gone"])
        await client.close()
        await other.close()

    world.run(scenario())


def test_ephemeral_nodes_go_with_their_session(world: World) -> None:
    async def scenario() -> None:
        client, _ = await started(world)
        other, _ = await started(world, "b")
        await client.multi([Create("/a", b"", ephemeral=True)])
        said: list[str] = []
        stat = await other.exists("/a", lambda: said.append("gone"))
        assert stat is not None
        assert stat.owner == client.session_id != other.session_id
        await client.close()
        await until(lambda: said)
        assert await other.exists("/a") is None
        await other.close()

    world.run(scenario())


def test_a_broken_connection_comes_back_with_the_same_session(world: World) -> None:
    async def scenario() -> None:
        client, events = await started(world)
        session = client.session_id
        said: list[str] = []
        await client.multi([Create("/a", b"", ephemeral=True)])
        await client.get("/a", lambda: said.append("forgotten"))
        world.cut("a")
        await until(lambda: events == [SessionEvent.SUSPENDED, SessionEvent.CONNECTED])
        assert client.session_id == session
        assert await client.exists("/a") is not None
        await client.multi([Set("/a", b"1")])
        await client.sync()
        assert not said
        await client.close()

    world.run(scenario())


def test_a_request_whose_answer_is_lost_may_have_been_done(world: World) -> None:
    async def scenario() -> None:
        client, events = await started(world)
        other, _ = await started(world, "b")
        world.swallow_answers("a")
        request = asyncio.ensure_future(client.multi([Create("/a", b"")]))
        while await other.exists("/a") is None:
            await other.sync()
        world.cut("a")
        with pytest.raises(ConnectionLost):
            await request
        await until(lambda: SessionEvent.SUSPENDED in events)
        await until(lambda: SessionEvent.CONNECTED in events)
        assert await client.exists("/a") is not None
        await client.close()
        await other.close()

    world.run(scenario())


def test_while_there_is_no_connection_nothing_is_tried(world: World) -> None:
    async def scenario() -> None:
        client, events = await started(world)
        refused: list[BaseException] = []

        async def ask() -> None:
            try:
                await client.multi([Create("/a", b"")])
            except ConnectionLost as error:
                refused.append(error)

        tasks: list[asyncio.Task[None]] = []
        client_events = events.append

        def listener(event: SessionEvent) -> None:
            client_events(event)
            if event is SessionEvent.SUSPENDED:
                tasks.append(asyncio.ensure_future(ask()))

        client._listener = listener  # type: ignore[attr-defined]
        world.cut("a")
        await until(lambda: SessionEvent.CONNECTED in events)
        assert len(refused) == len(tasks) == 1
        assert await client.exists("/a") is None
        await client.close()

    world.run(scenario())


def test_an_expired_session_is_followed_by_a_new_one(world: World) -> None:
    async def scenario() -> None:
        client, events = await started(world)
        session = client.session_id
        await client.multi([Create("/a", b"", ephemeral=True)])
        await world.expire("a")
        await until(lambda: SessionEvent.EXPIRED in events)
        await until(lambda: events[-1] is SessionEvent.CONNECTED)
        assert events == [SessionEvent.SUSPENDED, SessionEvent.EXPIRED, SessionEvent.CONNECTED]
        assert client.session_id != session
        assert await client.exists("/a") is None
        await client.close()

    world.run(scenario())


def test_clients_below_a_chroot_see_only_what_is_there(world: World) -> None:
    async def scenario() -> None:
        below, _ = await started(world, "a", "/x/y")
        above, _ = await started(world, "b")
        assert await below.multi([Create("/s-", b"", sequential=True)]) == ["/s-0000000000"]
        assert await below.children("/") == ["s-0000000000"]
        assert await above.children("/x/y") == ["s-0000000000"]
        with pytest.raises(NoNode, match="/nothing:"):
            await below.get("/nothing")
        await below.close()
        await above.close()

    world.run(scenario())
