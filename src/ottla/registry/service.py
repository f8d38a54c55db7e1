"""A registry that runs: its state, who writes, and what clients ask for. Work on schemas is done off the loop."""

import asyncio
import contextlib
import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple, TypeVar

from ottla.client.cluster import Cluster
from ottla.registry import decisions
from ottla.registry.compatibility.levels import Previous, check_levels
from ottla.registry.content import NUMBER_MAX, PROTOBUF, Content, read_content
from ottla.registry.election import Election, Identity
from ottla.registry.errors import Code, InvalidSchema, RegistryError, TooComplex
from ottla.registry.limits import LIMITS, SchemaLimits
from ottla.registry.records import RegistryRecord
from ottla.registry.schemas.kinds import parse_schema
from ottla.registry.schemas.parsed import ParsedSchema, Referenced
from ottla.registry.state import RegistryState, Version
from ottla.registry.store import Fenced, SchemasTopic
from ottla.registry.subjects import context_of

logger = logging.getLogger(__name__)

T = TypeVar("T")

WORKERS = 4
KEPT_SCHEMAS_MAX = 2000
LEADER_SECONDS_MAX = 15.0
RACES_MAX = 20


class NotTheWriter(RegistryError):
    def __init__(self) -> None:
        super().__init__(Code.NO_LEADER, "Master not known.")


class Stored(NamedTuple):
    """A schema in the form in which it is stored, and read."""

    content: Content
    parsed: ParsedSchema


class Registry:
    """`connect` opens a connection to the cluster; `identity` is how other instances reach this one."""

    def __init__(
        self,
        connect: Callable[[], Cluster],
        identity: Identity,
        *,
        group: str,
        session_timeout_ms: int,
        topic: str,
        limits: SchemaLimits = LIMITS,
    ) -> None:
        self.limits = limits
        self.identity = identity
        self.cluster = connect()
        self.topic = SchemasTopic(connect, topic)
        self.writer: Identity | None = None
        self._election = Election(
            connect(), identity, self._changed, group=group, session_timeout_ms=session_timeout_ms
        )
        self._writes_here = False
        self._changes = asyncio.Event()
        self._lock = asyncio.Lock()
        self._pool = ThreadPoolExecutor(WORKERS, thread_name_prefix="schemas")
        self._parsed: OrderedDict[tuple[str, str, tuple[Referenced, ...]], ParsedSchema] = OrderedDict()

    @property
    def state(self) -> RegistryState:
        return self.topic.state

    @property
    def writes_here(self) -> bool:
        return self._writes_here

    async def start(self) -> None:
        await self.topic.open()
        self._election.start()

    async def stop(self) -> None:
        await self._election.close()
        await self.topic.close()
        await self.cluster.close()
        self._pool.shutdown(wait=False, cancel_futures=True)

    async def _changed(self, writer: Identity | None, here: bool) -> None:
        if not here:
            self._writes_here = False
            self.topic.give_up()
        elif not self._writes_here:
            async with self._lock:
                try:
                    await self.topic.take_over()
                except Fenced as error:
                    logger.warning("Cannot write although chosen to: %s", error)
                    self._election.join_again()
                    return
            self._writes_here = True
        if writer != self.writer and writer is not None:
            logger.info("The writer is %s%s", writer.url, ", this instance" if here else "")
        self.writer = writer
        changes, self._changes = self._changes, asyncio.Event()
        changes.set()

    async def known_writer(self) -> Identity:
        """Waits a while for an election to end. This instance, if it writes."""
        deadline = asyncio.get_running_loop().time() + LEADER_SECONDS_MAX
        while self.writer is None or (self.writer == self.identity and not self._writes_here):
            changes = self._changes
            try:
                async with asyncio.timeout_at(deadline):
                    await changes.wait()
            except TimeoutError:
                raise NotTheWriter from None
        return self.writer

    async def next_writer(self, seconds: float) -> None:
        """Until an election ends, or for so long."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._changes.wait()

    # Writing.

    async def write(self, decide: Callable[[], tuple[T, Sequence[RegistryRecord]]]) -> T:
        """Decide and append, one at a time."""
        async with self._lock:
            return await self._write(decide)

    async def _write(self, decide: Callable[[], tuple[T, Sequence[RegistryRecord]]]) -> T:
        if not self._writes_here:
            raise NotTheWriter
        result, records = decide()
        if records:
            try:
                await self.topic.append(records)
            except Fenced as error:
                logger.warning("Stops writing: %s", error)
                self._writes_here = False
                self._election.join_again()
                raise RegistryError(
                    Code.STORE, f"Error while registering the schema in the backend store: {error}"
                ) from None
        return result

    async def register(self, subject: str, document: Mapping[str, Any], *, normalize: bool) -> Version:
        """Compared with what is there outside the lock, so that a schema that takes long holds up nobody."""
        for _ in range(RACES_MAX):
            stored = await self.read(subject, document, normalize=normalize)
            wanted = _registration(subject, document, stored.content)
            same = await self._same_ids(subject, stored)
            before = self._fingerprint(subject)
            found = decisions.register(self.state, wanted, same, _now_ms())
            if found.records and self.state.mode(subject) != "IMPORT":
                await self._check(subject, stored)
            async with self._lock:
                if self._fingerprint(subject) != before:
                    continue
                return await self._write(partial(_decide_registration, self.state, wanted, same))
        raise RegistryError(Code.TIMEOUT, f"subject {subject} changes too often to register a schema now; try again")

    def _fingerprint(self, subject: str) -> Any:
        """What a decision about a subject depends on, ids aside: those are given inside the lock."""
        versions = self.state.versions(subject, deleted=True)
        return (
            [(each.version, each.schema_id, each.deleted) for each in versions],
            dict(self.state.config(subject)),
            self.state.mode(subject),
        )

    async def _check(self, subject: str, stored: Stored) -> None:
        level, policy = decisions.level_for(self.state, subject)
        versions = decisions.compared_with(self.state, subject, stored.content)
        reasons = await self.compare(stored.parsed, versions, level, policy)
        if reasons:
            raise RegistryError(
                Code.INCOMPATIBLE,
                "Schema being registered is incompatible with an earlier schema for subject "
                f'"{subject}", details: [{", ".join(reasons)}]',
            )

    # Schemas.

    async def read(
        self, subject: str, document: Mapping[str, Any], *, normalize: bool, complete: bool = True
    ) -> Stored:
        """A request's schema in the form in which it would be stored."""
        content = read_content(document)
        decisions.check_size(content, self.limits)
        parsed = await self.parse(content, context_of(subject))
        normalize = normalize or bool(self.state.config(subject).get("normalize"))
        text = await self.in_thread(parsed.normalized if normalize else lambda: parsed.canonical)
        references = tuple(sorted(content.references)) if normalize else content.references
        content = content._replace(text=text, references=references)
        return Stored(decisions.completed(self.state, subject, content) if complete else content, parsed)

    async def parse(self, content: Content, context: str) -> ParsedSchema:
        references = tuple(decisions.resolve_references(self.state, content, context, self.limits))
        key = (content.schema_type, content.text, references)
        known = self._parsed.get(key)
        if known is None:
            known = await self.in_thread(lambda: parse_schema(*key, self.limits))
            self._parsed[key] = known
            if len(self._parsed) > KEPT_SCHEMAS_MAX:
                self._parsed.popitem(last=False)
        else:
            self._parsed.move_to_end(key)
        return known

    async def in_thread(self, work: Callable[[], T]) -> T:
        try:
            return await asyncio.get_running_loop().run_in_executor(self._pool, work)
        except RecursionError:
            raise TooComplex("the schema is nested too deeply: make it simpler") from None

    async def compare(self, parsed: ParsedSchema, versions: Sequence[Version], level: str, policy: str) -> list[str]:
        """Why `parsed` cannot follow these versions; empty if it can."""
        if not versions or level == "NONE":
            return []
        if "TRANSITIVE" not in level:
            versions = versions[-1:]
        previous = []
        for each in versions:
            try:
                previous.append(Previous(each.version, await self.parse(each.content, context_of(each.subject))))
            except InvalidSchema as error:
                return [
                    f"{{errorType:'INVALID_OLD_SCHEMA', description:'version {each.version} cannot be read: {error}'}}"
                ]
        return await self.in_thread(lambda: check_levels(parsed, previous, level, policy=policy))

    async def _same_ids(self, subject: str, stored: Stored) -> list[int]:
        """Ids of versions that say the same in other words: a .proto text and its descriptor are one schema."""
        content = stored.content
        if content.schema_type != PROTOBUF or decisions.find_version(self.state, subject, content, deleted=True):
            return []
        own: Any = stored.parsed
        found = []
        for each in self.state.versions(subject, deleted=True):
            if each.content.schema_type == PROTOBUF:
                other: Any = await self.parse(each.content, context_of(subject))
                if other.descriptor() == own.descriptor():
                    found.append(each.schema_id)
        return found

    async def look_up(
        self, subject: str, document: Mapping[str, Any], *, normalize: bool, deleted: bool
    ) -> Version | None:
        stored = await self.read(subject, document, normalize=normalize, complete=False)
        same = await self._same_ids(subject, stored)
        return decisions.find_version(self.state, subject, stored.content, same, deleted=deleted)


def _decide_registration(
    state: RegistryState, wanted: decisions.Registration, same: Sequence[int]
) -> tuple[Version, list[RegistryRecord]]:
    made = decisions.register(state, wanted, same, _now_ms())
    return made.version, made.records


def _registration(subject: str, document: Mapping[str, Any], content: Content) -> decisions.Registration:
    schema_id, version = document.get("id"), document.get("version")
    for name, value in (("id", schema_id), ("version", version)):
        if value is not None and (not isinstance(value, int) or isinstance(value, bool)):
            raise InvalidSchema(f"`{name}` is a number")
        if value is not None and not -1 <= value <= NUMBER_MAX:
            raise InvalidSchema(f"`{name}` is at most {NUMBER_MAX}")
    return decisions.Registration(
        subject, content, -1 if schema_id is None else schema_id, 0 if version is None else version
    )


def _now_ms() -> int:
    return int(time.time() * 1000)
