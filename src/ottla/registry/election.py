"""Who writes: instances are members of a group of the classic protocol, type `sr`, and its leader names the writer.

The decision is `choose`, which does no I/O; `Election` is the member around it.
"""

import asyncio
import contextlib
import json
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple

from ottla.client.cluster import PASSING, Cluster, raise_for
from ottla.client.errors import ClientError
from ottla.model.errors import ApiError, ErrorCode, OttlaError
from ottla.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from ottla.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from ottla.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity
from ottla.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse

logger = logging.getLogger(__name__)

GROUP = "schema-registry"
PROTOCOL_TYPE, PROTOCOL = "sr", "v0"
SESSION_TIMEOUT_MS = 10_000
REBALANCE_TIMEOUT_MS = 60_000
PAUSE_S = 0.2
NO_ERROR, DUPLICATE_URLS = 0, 1
_JOIN_AGAIN = frozenset({ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.ILLEGAL_GENERATION, ErrorCode.UNKNOWN_MEMBER_ID})


class Identity(NamedTuple):
    """An instance as others reach it."""

    host: str
    port: int
    scheme: str = "http"
    eligible: bool = True

    @property
    def url(self) -> str:
        return f"{self.scheme}://{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"

    def document(self) -> dict[str, Any]:
        return {
            "version": 1,
            "host": self.host,
            "port": self.port,
            "master_eligibility": self.eligible,
            "scheme": self.scheme,
        }

    def encode(self) -> bytes:
        return json.dumps(self.document(), separators=(",", ":")).encode()


def decode_identity(document: Mapping[str, Any]) -> Identity:
    return Identity(
        str(document["host"]),
        int(document["port"]),
        str(document.get("scheme", "http")),
        bool(document.get("master_eligibility", True)),
    )


class Assignment(NamedTuple):
    error: int
    master: str | None
    """The member id of the writer."""
    identity: Identity | None

    def encode(self) -> bytes:
        document = {
            "version": 1,
            "error": self.error,
            "master": self.master,
            "master_identity": None if self.identity is None else self.identity.document(),
        }
        return json.dumps(document, separators=(",", ":")).encode()


def decode_assignment(encoded: bytes) -> Assignment:
    document = json.loads(encoded)
    identity = document.get("master_identity")
    return Assignment(
        int(document["error"]), document.get("master"), None if identity is None else decode_identity(identity)
    )


def choose(members: Mapping[str, Identity]) -> Assignment:
    """The eligible member with the smallest URL; two of one URL are a mistake that nobody is chosen in."""
    urls = [identity.url for identity in members.values()]
    if len(set(urls)) < len(urls):
        return Assignment(DUPLICATE_URLS, None, None)
    eligible = [(identity.url, member) for member, identity in members.items() if identity.eligible]
    if not eligible:
        return Assignment(NO_ERROR, None, None)
    master = min(eligible)[1]
    return Assignment(NO_ERROR, master, members[master])


class Election:
    """A member of the group. `on_change` is told who writes (None: nobody known), and whether it is this instance."""

    def __init__(
        self,
        cluster: Cluster,
        identity: Identity,
        on_change: Callable[[Identity | None, bool], Awaitable[None]],
        *,
        group: str = GROUP,
        session_timeout_ms: int = SESSION_TIMEOUT_MS,
    ) -> None:
        self._cluster = cluster
        self._identity = identity
        self._on_change = on_change
        self._group = group
        self._session_timeout_ms = session_timeout_ms
        self._member_id = ""
        self._generation = -1
        self._task: asyncio.Task[None] | None = None
        self._again = asyncio.Event()

    def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name="registry election")

    def join_again(self) -> None:
        """The writer cannot write: it takes the next generation, perhaps as the writer again."""
        self._again.set()

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        with contextlib.suppress(OttlaError, TimeoutError):
            async with asyncio.timeout(2):
                await self._leave()
        await self._cluster.close()

    async def _run(self) -> None:
        while True:
            try:
                await self._take_part()
            except OttlaError as error:
                if not isinstance(error, ApiError) or error.code not in _JOIN_AGAIN | PASSING:
                    logger.warning("No part in the group %s for now: %s", self._group, error)
                if isinstance(error, ApiError) and error.code is ErrorCode.UNKNOWN_MEMBER_ID:
                    self._member_id = ""
                if not (isinstance(error, ApiError) and error.code is ErrorCode.REBALANCE_IN_PROGRESS):
                    await self._on_change(None, False)
                    await asyncio.sleep(PAUSE_S)

    async def _take_part(self) -> None:
        joined = await self._join()
        self._member_id, self._generation = joined.member_id, joined.generation_id
        assignments = []
        if joined.leader == joined.member_id:
            members = {each.member_id: decode_identity(json.loads(each.metadata)) for each in joined.members}
            chosen = choose(members).encode()
            assignments = [SyncGroupRequestAssignment(member_id=member, assignment=chosen) for member in members]
        assignment = decode_assignment(await self._sync(assignments))
        if assignment.error == DUPLICATE_URLS:
            logger.error("Two instances say that they are at the same URL; none is chosen (--advertised-url helps)")
        self._again.clear()
        await self._on_change(assignment.identity, assignment.master == self._member_id)
        await self._beat_until_changed()

    async def _call(self, request: Any, answer: type[Any], timeout_s: float | None = None) -> Any:
        node = await self._cluster.coordinator(self._group)
        return await self._cluster.call(request, answer, node=node, timeout_s=timeout_s)

    async def _join(self) -> JoinGroupResponse:
        async def attempt() -> JoinGroupResponse:
            request = JoinGroupRequest(
                group_id=self._group,
                session_timeout_ms=self._session_timeout_ms,
                rebalance_timeout_ms=REBALANCE_TIMEOUT_MS,
                member_id=self._member_id,
                protocol_type=PROTOCOL_TYPE,
                protocols=[JoinGroupRequestProtocol(name=PROTOCOL, metadata=self._identity.encode())],
            )
            response: JoinGroupResponse = await self._call(request, JoinGroupResponse, REBALANCE_TIMEOUT_MS / 1000 + 5)
            if response.error_code == ErrorCode.MEMBER_ID_REQUIRED:
                self._member_id = response.member_id
                return await attempt()
            raise_for(response.error_code)
            return response

        return await self._cluster.retrying(attempt)

    async def _sync(self, assignments: list[SyncGroupRequestAssignment]) -> bytes:
        request = SyncGroupRequest(
            group_id=self._group,
            generation_id=self._generation,
            member_id=self._member_id,
            protocol_type=PROTOCOL_TYPE,
            protocol_name=PROTOCOL,
            assignments=assignments,
        )
        response: SyncGroupResponse = await self._call(request, SyncGroupResponse)
        raise_for(response.error_code)
        return response.assignment

    async def _beat_until_changed(self) -> None:
        """Ends with REBALANCE_IN_PROGRESS, or with the session: whoever is not heard of is not the writer."""
        heard = time.monotonic()
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._session_timeout_ms / 3000):
                    await self._again.wait()
                    return
            request = HeartbeatRequest(group_id=self._group, generation_id=self._generation, member_id=self._member_id)
            try:
                response: HeartbeatResponse = await self._call(
                    request, HeartbeatResponse, self._session_timeout_ms / 1000
                )
                raise_for(response.error_code)
                heard = time.monotonic()
            except (ApiError, ClientError) as error:
                passing = not isinstance(error, ApiError) or error.code in PASSING
                if not passing or time.monotonic() - heard > self._session_timeout_ms / 1000:
                    raise
                self._cluster.forget_coordinators()

    async def _leave(self) -> None:
        if self._member_id:
            request = LeaveGroupRequest(
                group_id=self._group,
                member_id=self._member_id,
                members=[MemberIdentity(member_id=self._member_id)],
            )
            await self._call(request, LeaveGroupResponse)
