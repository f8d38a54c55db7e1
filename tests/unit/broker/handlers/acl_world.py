"""A broker with an authorizer, asked over frames by clients of any name."""

import asyncio
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.unit.broker.handlers.conftest import Harness
from tests.unit.broker.handlers.partition_requests import to_bytes

from ottla.broker.handlers.context import CloseConnection, NoResponse, Parked
from ottla.broker.server.dispatch import Dispatcher
from ottla.broker.session import Principal, Session
from ottla.cluster.image import ClusterImage, ImageChange
from ottla.config.access import AUTHORIZERS
from ottla.model.acls import CLUSTER_NAME, AclEntry, PatternType, Permission, ResourcePattern
from ottla.model.rights import Operation, Resource
from ottla.protocol.apis import API, ApiKey
from ottla.protocol.codec import decode, encode
from ottla.protocol.frames import request_frame
from ottla.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.protocol.schema import Message, TopLevel

ADMIN = "User:admin"
ALICE = "User:alice"
AUTHORIZATION = frozenset({29, 30, 31, 53, 54, 55, 65})
HOST = "10.1.2.3"


def error_codes(message: Message) -> Iterator[int]:
    """Every error code in an answer, whatever its field is called."""
    for field in message.FIELDS:
        value = getattr(message, field.name)
        if field.name.endswith("error_code"):
            yield value
        for part in value if isinstance(value, list) else [value]:
            if isinstance(part, Message):
                yield from error_codes(part)


NAMING = {
    "name", "topic", "topic_name", "group_id", "resource_type", "resource_name", "transactional_id", "user",
    "entity_type", "entity_name", "producer_id", "partition", "partition_id", "partition_index", "index",
}  # fmt: skip


def _called(entry: Message) -> str:
    """What an entry of a list is about: brokers may put them in any order."""
    values = [getattr(entry, field.name) for field in entry.FIELDS if field.name in NAMING]
    return ",".join(str(value) for value in values if value not in (None, ""))


def refusals(
    message: Message, place: str = "", codes: Collection[int] | None = AUTHORIZATION
) -> Iterator[tuple[str, int]]:
    """Where an answer says that somebody may not do something, and how many entries its lists of outcomes have. An
    entry is called by what it is about; one without a name, or with an id of this cluster alone, by nothing.

    `codes`: which errors are told, none but those of rights if nothing else is said; None: whatever an answer says."""
    for field in message.FIELDS:
        value, here = getattr(message, field.name), f"{place}.{field.name}"
        if field.name.endswith("error_code") and (codes is None or value in codes):
            yield here, value
        if isinstance(value, list):
            entries = [part for part in value if isinstance(part, Message)]
            if any(each.name.endswith("error_code") for part in entries[:1] for each in part.FIELDS):
                yield f"{here}.length", len(entries)
            for part in entries:
                yield from refusals(part, f"{here}[{_called(part)}]", codes)
        elif isinstance(value, Message):
            yield from refusals(value, here, codes)


class Closed(Exception):
    """The connection was closed instead of an answer."""


class AclWorld:
    def __init__(self, harness: Harness) -> None:
        self.harness = harness
        self.broker = harness.broker
        self.rules: dict[ResourcePattern, tuple[AclEntry, ...]] = {}
        self.runner = asyncio.Runner()
        self.dispatcher = Dispatcher(self.broker, self.runner.get_loop())

    def ask(self, request: TopLevel, version: int, principal: str = ALICE, host: str = HOST) -> Any:
        """What a client is answered, through header, codec and dispatcher; None: nothing."""
        return self.runner.run(self._ask(request, version, principal, host))

    async def _ask(self, request: TopLevel, version: int, principal: str, host: str) -> Any:
        spec = API[ApiKey(request.API_KEY)]
        flexible = version >= spec.flexible_from
        session = Session("PLAINTEXT", host)
        session.authenticated(Principal(*principal.split(":")))
        framed = request_frame(spec.key, version, 7, "tests", encode(request, version), flexible=flexible)
        answer = self.dispatcher.dispatch(bytearray(framed[4:]), session)
        outcome = answer.outcome
        if isinstance(outcome, Parked):
            done: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
            outcome.when_resolved(done.set_result)
            outcome = await done
        if isinstance(outcome, CloseConnection):
            raise Closed
        if isinstance(outcome, NoResponse):
            return None
        assert not isinstance(outcome, Parked)
        return decode(spec.response_class, version, to_bytes(self.dispatcher.pack(answer, outcome)))

    def codes(self, request: TopLevel, version: int, principal: str = ALICE) -> list[int]:
        """The error codes of an answer that are about what the client may do, however deep they stand in it."""
        return sorted(code for code in error_codes(self.ask(request, version, principal)) if code in AUTHORIZATION)

    def create(self, *names: str, partitions: int = 1) -> None:
        topics = [CreatableTopic(name=name, num_partitions=partitions, replication_factor=1) for name in names]
        response = self.ask(CreateTopicsRequest(topics=topics, timeout_ms=1000), 7, ADMIN)
        assert [topic.error_code for topic in response.topics] == [0] * len(names)

    def grant(
        self,
        operation: Operation | int,
        resource: Resource,
        name: str = CLUSTER_NAME,
        *,
        principal: str = ALICE,
        host: str = "*",
        type: PatternType = PatternType.LITERAL,  # noqa: A002
        permission: Permission = Permission.ALLOW,
    ) -> None:
        pattern = ResourcePattern(resource, name, type)
        entry = AclEntry(principal, host, int(operation), permission)
        self._put(pattern, (*self.rules.get(pattern, ()), entry))

    def withdraw_all(self) -> None:
        for pattern in tuple(self.rules):
            self._put(pattern, ())

    def _put(self, pattern: ResourcePattern, entries: tuple[AclEntry, ...]) -> None:
        """Tell the authorizer as the metadata would; a commit for each of so many rules would take its time."""
        assert self.broker.authorizer is not None
        self.rules[pattern] = entries
        new = ClusterImage(acls=dict(self.rules))
        self.broker.authorizer.apply(ImageChange(ClusterImage(), new, acls=(pattern,)))


@contextmanager
def secured(directory: Path, **settings: str) -> Iterator[AclWorld]:
    given = {"offsets_topic_num_partitions": "1", "transaction_state_log_num_partitions": "1", **settings}
    harness = Harness(directory, authorizer_class_name=AUTHORIZERS[1], super_users=ADMIN, **given)
    world = AclWorld(harness)
    for entry in world.broker.coordinators.values():
        entry.coordinator.start()
    try:
        with world.runner:
            yield world
    finally:
        harness.close()
