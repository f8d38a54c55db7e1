"""Apache Kafka with its StandardAuthorizer refuses what Ottla's own tests say that is refused, code by code, and in the
same places of its answers as a broker of ours beside it.

Everybody is anonymous, and told apart by where they come from: brokers at 127.0.0.1, the administrator at 127.0.0.2,
and the one who has no rights at 127.0.0.3.
"""

import asyncio
import itertools
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
from compat.peer.kafka import running
from tests.unit.broker.handlers.acl_world import AUTHORIZATION, error_codes, refusals
from tests.unit.broker.handlers.test_acl_answers import CASES, Case, Grant

from ottla.model.acls import ALL_OPERATIONS, ANY, CLUSTER_NAME
from ottla.model.rights import Operation, Resource
from ottla.protocol.apis import API, ApiKey
from ottla.protocol.codec import decode, encode
from ottla.protocol.frames import read_response_header, request_frame
from ottla.protocol.messages.create_acls import AclCreation, CreateAclsRequest
from ottla.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from ottla.protocol.messages.describe_cluster import DescribeClusterRequest
from ottla.protocol.messages.describe_groups import DescribeGroupsRequest
from ottla.protocol.messages.find_coordinator import FindCoordinatorRequest
from ottla.protocol.messages.init_producer_id import InitProducerIdRequest
from ottla.protocol.messages.list_groups import ListGroupsRequest
from ottla.protocol.messages.list_transactions import ListTransactionsRequest
from ottla.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from ottla.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from ottla.protocol.schema import TopLevel
from ottla.testing import broker

pytestmark = pytest.mark.usefixtures("kafka_libs")

BROKERS, ADMIN, NOBODY = "127.0.0.1", "127.0.0.2", "127.0.0.3"
PATIENCE_S = 30.0
LITERAL, ALLOW = 3, 3
LISTED = "listed"
DIFFERENT: dict[str, str] = {
    "DescribeUserScramCredentials": "Kafka 4.3.1 leaves who may not and names nobody without an answer: it fails at it",
}
"""Cases that Kafka answers otherwise, with the reason."""
OWN = ("AppendMirrored",)
"""APIs that Kafka does not have."""
KAFKAS = [case for case in CASES if case.name not in OWN]
ELSEWHERE: dict[str, str] = {}
"""Cases in which the same codes stand in other places, with the reason."""

OTHERWISE: dict[str, str] = {}
"""Cases in which something else than rights is answered otherwise, once everything is allowed, with the reason."""


class Peer:
    """Kafka, spoken to in single frames from any loopback address."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.runner = asyncio.Runner()
        self.ids: dict[str, UUID] = {}

    @property
    def world(self) -> Any:
        """What the cases ask about a broker: the ids of topics."""
        topics = {name: SimpleNamespace(topic_id=topic_id) for name, topic_id in self.ids.items()}
        return SimpleNamespace(harness=SimpleNamespace(store=SimpleNamespace(image=SimpleNamespace(topics=topics))))

    def ask(self, request: TopLevel, version: int, host: str = NOBODY) -> Any:
        return self.runner.run(asyncio.wait_for(self._ask(request, version, host), PATIENCE_S))

    async def _ask(self, request: TopLevel, version: int, host: str) -> Any:
        spec = API[ApiKey(request.API_KEY)]
        flexible = version >= spec.flexible_from
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port, local_addr=(host, 0))
        try:
            writer.write(request_frame(spec.key, version, 7, "tests", encode(request, version), flexible=flexible))
            frame = await reader.readexactly(int.from_bytes(await reader.readexactly(4), "big"))
        finally:
            writer.close()
        _, start = read_response_header(frame, flexible=flexible)
        return decode(spec.response_class, version, frame[start:])

    def codes(self, request: TopLevel, version: int) -> list[int]:
        return sorted(code for code in error_codes(self.ask(request, version)) if code in AUTHORIZATION)

    def places(self, case: Case, version: int) -> list[tuple[str, int]]:
        """Where which code stands, and how long the lists are that it stands in; lists may be in any order."""
        return sorted(refusals(self.ask(case.make(self.world, version), version)))

    def outcome(self, case: Case, version: int) -> list[tuple[str, int]]:
        """Every code of an answer and its place, that of success too, and how long its lists of outcomes are."""
        return sorted(refusals(self.ask(case.make(self.world, version), version), codes=None))

    def allow(self, *rules: tuple[int, int, str, str]) -> None:
        """Operation, resource, name, host."""
        creations = [
            AclCreation(resource, name, LITERAL, "User:ANONYMOUS", host, int(operation), ALLOW)
            for operation, resource, name, host in rules
        ]
        results = self.ask(CreateAclsRequest(creations), 3, ADMIN).results
        assert [result.error_code for result in results] == [0] * len(rules), results

    def withdraw_all(self) -> None:
        mine = DeleteAclsFilter(ANY, None, ANY, "User:ANONYMOUS", NOBODY, ANY, ANY)
        (result,) = self.ask(DeleteAclsRequest([mine]), 3, ADMIN).filter_results
        assert result.error_code == 0

    def settles_at(self, case: Case, version: int, expected: Sequence[int]) -> list[int]:
        """What is refused: rules reach Kafka's brokers a moment after they were made."""
        ends = time.monotonic() + PATIENCE_S / 3
        while (found := self.codes(case.make(self.world, version), version)) != list(expected):
            if time.monotonic() > ends:
                break
        return found


SETTINGS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
}


@pytest.fixture(scope="module")
def peer(tmp_path_factory: pytest.TempPathFactory, kafka_libs: Path) -> Iterator[Peer]:
    with running(tmp_path_factory.mktemp("kafka"), settings=SETTINGS) as node, _prepared(node.bootstrap) as peer:
        yield peer


@pytest.fixture(scope="module")
def ours() -> Iterator[Peer]:
    with broker(SETTINGS) as node, _prepared(node.bootstrap) as peer:
        yield peer


@contextmanager
def _prepared(bootstrap: str) -> Iterator[Peer]:
    """With topics a and b, and a group and a transactional id to be listed."""
    peer = Peer(int(bootstrap.rpartition(":")[2]))
    with peer.runner:
        everything = [(resource, "*") for resource in Resource if resource is not Resource.CLUSTER]
        peer.allow(
            (ALL_OPERATIONS, Resource.CLUSTER, CLUSTER_NAME, BROKERS),
            (ALL_OPERATIONS, Resource.CLUSTER, CLUSTER_NAME, ADMIN),
            *((ALL_OPERATIONS, resource, name, ADMIN) for resource, name in everything),
        )
        topics = [CreatableTopic(name=name, num_partitions=1, replication_factor=1) for name in "ab"]
        peer.ask(CreateTopicsRequest(topics=topics, timeout_ms=10_000), 7, ADMIN)
        _until(lambda: _led(peer))
        for kind in (0, 1):
            _until(lambda: peer.ask(FindCoordinatorRequest("g", kind), 1, ADMIN).error_code == 0)  # noqa: B023
        commit = OffsetCommitRequest(
            group_id=LISTED,
            generation_id_or_member_epoch=-1,
            topics=[OffsetCommitRequestTopic(name="a", partitions=[OffsetCommitRequestPartition(committed_offset=0)])],
        )
        _until(lambda: not peer.ask(commit, 8, ADMIN).topics[0].partitions[0].error_code)
        begin = InitProducerIdRequest(transactional_id=LISTED, transaction_timeout_ms=60_000)
        _until(lambda: not peer.ask(begin, 4, ADMIN).error_code)
        yield peer


def _led(peer: Peer) -> bool:
    told = peer.ask(MetadataRequest([MetadataRequestTopic(name=name) for name in "ab"]), 12, ADMIN).topics
    peer.ids = {topic.name: topic.topic_id for topic in told}
    return all(not topic.error_code and topic.partitions[0].leader_id >= 0 for topic in told)


def _until(condition: Any) -> None:
    ends = time.monotonic() + 2 * PATIENCE_S
    while not condition():
        assert time.monotonic() < ends, "the peer is not ready"


def _granted(grant: Grant) -> tuple[int, int, str, str]:
    operation, resource, name = grant
    return int(operation), resource, name, NOBODY


@pytest.mark.parametrize("case", KAFKAS, ids=[f"{case.name} v{case.all_versions.start}" for case in KAFKAS])
def test_kafka_refuses_the_same(case: Case, peer: Peer, ours: Peer) -> None:
    if case.name in DIFFERENT:
        pytest.skip(DIFFERENT[case.name])
    versions = case.all_versions
    for version in sorted({versions[0], versions[-1]}):
        for each in (peer, ours):
            each.withdraw_all()
            assert each.settles_at(case, version, case.before) == list(case.before), version
        if case.name not in ELSEWHERE:
            assert ours.places(case, version) == peer.places(case, version), version
        for grant, left in case.steps:
            for each in (peer, ours):
                each.allow(_granted(grant))
                assert each.settles_at(case, version, left) == list(left), (version, grant)
            if left and case.name not in ELSEWHERE:
                assert ours.places(case, version) == peer.places(case, version), (version, grant)
            if not left and case.name not in OTHERWISE:
                assert_same_outcome(case, version, peer, ours)


def assert_same_outcome(case: Case, version: int, peer: Peer, ours: Peer) -> None:
    """Of a request that is allowed. A coordinator that loads, or a topic that is being made, is waited for on both."""
    ends = time.monotonic() + PATIENCE_S / 3
    while (mine := ours.outcome(case, version)) != (theirs := peer.outcome(case, version)):
        assert time.monotonic() < ends, f"version {version}: ours {mine}, Kafka's {theirs}"


@pytest.mark.parametrize(
    ("request_", "version", "ids", "grant"),
    [
        (ListGroupsRequest(), 5, "groups", (Operation.DESCRIBE, Resource.GROUP, LISTED)),
        (ListGroupsRequest(), 5, "groups", (Operation.DESCRIBE, Resource.CLUSTER, CLUSTER_NAME)),
        (ListTransactionsRequest(), 1, "transaction_states", (Operation.DESCRIBE, Resource.TRANSACTIONAL_ID, LISTED)),
    ],
    ids=["ListGroups", "ListGroups by the cluster", "ListTransactions"],
)
def test_lists_leave_out_the_same(
    request_: TopLevel, version: int, ids: str, grant: Grant, peer: Peer, ours: Peer
) -> None:
    def told(each: Peer) -> list[str]:
        found = getattr(each.ask(request_, version), ids)
        return [entry.group_id if ids == "groups" else entry.transactional_id for entry in found]

    for each in (peer, ours):
        each.withdraw_all()
        _until(lambda each=each: told(each) == [])
        each.allow(_granted(grant))
        _until(lambda each=each: LISTED in told(each))


RIGHTS: list[Grant] = [
    (Operation.READ, Resource.TOPIC, "a"),
    (Operation.ALTER_CONFIGS, Resource.TOPIC, "a"),
    (Operation.DELETE, Resource.GROUP, LISTED),
    (Operation.DESCRIBE, Resource.CLUSTER, CLUSTER_NAME),
    (Operation.ALTER, Resource.CLUSTER, CLUSTER_NAME),
    (Operation.IDEMPOTENT_WRITE, Resource.CLUSTER, CLUSTER_NAME),
]


def told_rights(each: Peer) -> dict[str, int]:
    asked = MetadataRequest(
        [MetadataRequestTopic(name="a")],
        include_topic_authorized_operations=True,
        include_cluster_authorized_operations=True,
    )
    metadata = each.ask(asked, 9)
    cluster = each.ask(DescribeClusterRequest(include_cluster_authorized_operations=True), 1)
    group = each.ask(DescribeGroupsRequest(groups=[LISTED], include_authorized_operations=True), 5).groups[0]
    return {
        "topic": metadata.topics[0].topic_authorized_operations,
        "cluster, by metadata": metadata.cluster_authorized_operations,
        "cluster": cluster.cluster_authorized_operations,
        "group": group.authorized_operations,
    }


def test_clients_are_told_the_same_of_what_they_may(peer: Peer, ours: Peer) -> None:
    """`authorized_operations` of topics, groups and the cluster, with one right after the other."""
    for each in (peer, ours):
        each.withdraw_all()
    seen = []
    for grant in RIGHTS:
        for each in (peer, ours):
            each.allow(_granted(grant))
        _until(lambda: told_rights(ours) == told_rights(peer))
        seen.append(told_rights(ours))
    assert all(before != after for before, after in itertools.pairwise(seen)), "each right is seen"
