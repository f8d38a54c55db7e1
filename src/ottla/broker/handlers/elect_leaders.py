"""ElectLeaders, key 43, versions 0 to 2.

Gives leadership to the preferred replicas of partitions, or, from version 1, to any replica that is left where no
in-sync one is (unclean: records that only the lost ones had are lost). Without partitions it is for all of them, and
those where nothing is to be done are left out of the answer.
"""

import asyncio
from collections.abc import Mapping

from ottla.broker.controller.holders import Place
from ottla.broker.controller.partition_decisions import ElectionType
from ottla.broker.handlers.common import access
from ottla.broker.handlers.context import Broker, Call
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.rights import Operation
from ottla.protocol.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)


async def handle(broker: Broker, call: Call, request: ElectLeadersRequest) -> ElectLeadersResponse:
    access.require_cluster(broker, call, Operation.ALTER)
    everything = request.topic_partitions is None
    places = _all_places(broker) if everything else _asked(request)
    failure: ApiError | None = None
    refusals: Mapping[Place, ApiError] = {}
    try:
        kind = _election_type(request)
        async with asyncio.timeout(max(0, request.timeout_ms) / 1000):
            refusals = await broker.controller.elect_leaders(kind, places)
    except TimeoutError:
        failure = ApiError(ErrorCode.REQUEST_TIMED_OUT, "not decided in time")
    except ApiError as error:
        failure = error
    if failure is not None:
        refusals = dict.fromkeys(places, failure)
    if everything:
        places = [place for place in places if not _was_not_needed(refusals.get(place))]
    return ElectLeadersResponse(
        error_code=failure.code if failure is not None else ErrorCode.NONE,
        replica_election_results=_results(places, refusals),
    )


def refuse(call: Call, request: ElectLeadersRequest, error: ApiError) -> ElectLeadersResponse:
    places = _asked(request)
    return ElectLeadersResponse(
        error_code=error.code, replica_election_results=_results(places, dict.fromkeys(places, error))
    )


def _election_type(request: ElectLeadersRequest) -> ElectionType:
    try:
        return ElectionType(request.election_type)
    except ValueError:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"there is no election type {request.election_type}") from None


def _all_places(broker: Broker) -> list[Place]:
    topics = broker.metadata.image.topics
    return [(name, number) for name in sorted(topics) for number in range(len(topics[name].partitions))]


def _asked(request: ElectLeadersRequest) -> list[Place]:
    return list(
        dict.fromkeys((topic.topic, number) for topic in request.topic_partitions or () for number in topic.partitions)
    )


def _was_not_needed(refusal: ApiError | None) -> bool:
    return refusal is not None and refusal.code == ErrorCode.ELECTION_NOT_NEEDED


def _results(places: list[Place], refusals: Mapping[Place, ApiError]) -> list[ReplicaElectionResult]:
    results: dict[str, ReplicaElectionResult] = {}
    for name, number in places:
        refusal = refusals.get((name, number))
        results.setdefault(name, ReplicaElectionResult(topic=name)).partition_result.append(
            PartitionResult(
                partition_id=number,
                error_code=refusal.code if refusal else ErrorCode.NONE,
                error_message=refusal.message if refusal else None,
            )
        )
    return list(results.values())
