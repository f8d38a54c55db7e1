"""Incremental fetch sessions: the rules a client relies on."""

import itertools
from uuid import UUID

import pytest

from ottla.broker.handlers.fetching.sessions import EVICTION_AGE_SECONDS, FetchSessions
from ottla.model.errors import ApiError, ErrorCode
from ottla.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic

ID = UUID(int=9)


def sessions(slots: int = 10) -> FetchSessions:
    counter = itertools.count(1)
    return FetchSessions(lambda: slots, lambda: next(counter))


def request(session_id: int, epoch: int, *partitions: int, forget: tuple[int, ...] = ()) -> FetchRequest:
    topics = (
        [FetchTopic(topic_id=ID, partitions=[FetchPartition(partition=p) for p in partitions])] if partitions else []
    )
    forgotten = [ForgottenTopic(topic_id=ID, partitions=list(forget))] if forget else []
    return FetchRequest(session_id=session_id, session_epoch=epoch, topics=topics, forgotten_topics_data=forgotten)


def partitions_of(cache: FetchSessions, what: FetchRequest, now: float = 0.0) -> list[int]:
    session = cache.session_for(what, uses_topic_ids=True, now=now)
    assert session is not None
    return [index for _, index in session.wanted]


def error_of(cache: FetchSessions, what: FetchRequest, *, uses_topic_ids: bool = True) -> ErrorCode:
    with pytest.raises(ApiError) as caught:
        cache.session_for(what, uses_topic_ids=uses_topic_ids, now=0.0)
    return caught.value.code


def test_a_session_remembers_adds_and_forgets() -> None:
    cache = sessions()
    assert partitions_of(cache, request(0, 0, 1, 2)) == [1, 2]
    assert partitions_of(cache, request(1, 1)) == [1, 2]
    assert partitions_of(cache, request(1, 2, 3)) == [1, 2, 3]
    assert partitions_of(cache, request(1, 3, forget=(1,))) == [2, 3]


def test_wrong_epochs_ids_and_naming_are_told_apart() -> None:
    cache = sessions()
    partitions_of(cache, request(0, 0, 1))
    assert error_of(cache, request(1, 7)) == ErrorCode.INVALID_FETCH_SESSION_EPOCH
    assert error_of(cache, request(99, 1)) == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert error_of(cache, request(1, 1), uses_topic_ids=False) == ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR


def test_the_final_epoch_ends_a_session_and_no_session_is_begun() -> None:
    cache = sessions()
    partitions_of(cache, request(0, 0, 1))
    assert cache.session_for(request(1, -1, 1), uses_topic_ids=True, now=0.0) is None
    assert len(cache) == 0


def test_a_full_cache_serves_without_a_session_until_one_is_old() -> None:
    cache = sessions(slots=1)
    partitions_of(cache, request(0, 0, 1))
    assert cache.session_for(request(0, 0, 2), uses_topic_ids=True, now=1.0) is None
    assert partitions_of(cache, request(0, 0, 2), now=EVICTION_AGE_SECONDS + 1) == [2]
    assert error_of(cache, request(1, 1)) == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_partitions_that_got_data_go_to_the_back() -> None:
    cache = sessions()
    session = cache.session_for(request(0, 0, 1, 2, 3), uses_topic_ids=True, now=0.0)
    assert session is not None
    session.to_the_back(session.wanted[("", ID), 1])
    assert [index for _, index in session.dirty] == [2, 3, 1]
