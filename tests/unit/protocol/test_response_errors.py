"""Error codes are found wherever they stand."""

from ottla.model.errors import ErrorCode
from ottla.protocol.messages.api_versions import ApiVersionsResponse
from ottla.protocol.messages.describe_cluster import DescribeClusterResponse
from ottla.protocol.messages.offset_commit import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from ottla.protocol.messages.offset_fetch import OffsetFetchResponse
from ottla.protocol.response_errors import errors_in


def test_the_error_of_the_whole_response() -> None:
    assert errors_in(ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)) == [35]
    assert errors_in(ApiVersionsResponse()) == []


def test_the_errors_of_its_parts() -> None:
    codes = (0, ErrorCode.NOT_COORDINATOR, 0, ErrorCode.NOT_COORDINATOR)
    partitions = [OffsetCommitResponsePartition(partition_index=0, error_code=code) for code in codes]
    topics = [OffsetCommitResponseTopic(name=name, partitions=partitions[:2]) for name in "ab"]
    assert errors_in(OffsetCommitResponse(topics=topics)) == [16, 16]


def test_parts_that_are_not_there() -> None:
    assert errors_in(OffsetFetchResponse()) == []
    assert errors_in(DescribeClusterResponse(brokers=[])) == []
