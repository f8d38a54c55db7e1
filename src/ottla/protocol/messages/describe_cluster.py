"""Messages of describe_cluster. Written by tools/generate_messages.py; do not edit."""

from typing import ClassVar

from msgspec import field

from ottla.protocol.schema import Field, Message, TopLevel


class DescribeClusterRequest(TopLevel):
    NAME: ClassVar[str] = "DescribeCluster"
    API_KEY: ClassVar[int] = 60
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 2
    FLEXIBLE_FROM: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("include_cluster_authorized_operations", "bool", 0),
        Field("endpoint_type", "int8", 1),
        Field("include_fenced_brokers", "bool", 2),
    )
    include_cluster_authorized_operations: bool = False
    endpoint_type: int = 1
    include_fenced_brokers: bool = False


class DescribeClusterBroker(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("broker_id", "int32", 0),
        Field("host", "string", 0),
        Field("port", "int32", 0),
        Field("rack", "string", 0, nullable_since=0),
        Field("is_fenced", "bool", 2),
    )
    broker_id: int = 0
    host: str = ""
    port: int = 0
    rack: str | None = None
    is_fenced: bool = False


class DescribeClusterResponse(TopLevel):
    NAME: ClassVar[str] = "DescribeCluster"
    API_KEY: ClassVar[int] = 60
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 2
    FLEXIBLE_FROM: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", 0),
        Field("error_code", "int16", 0),
        Field("error_message", "string", 0, nullable_since=0),
        Field("endpoint_type", "int8", 1),
        Field("cluster_id", "string", 0),
        Field("controller_id", "int32", 0),
        Field("brokers", DescribeClusterBroker, 0, array=True),
        Field("cluster_authorized_operations", "int32", 0),
    )
    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None
    endpoint_type: int = 1
    cluster_id: str = ""
    controller_id: int = -1
    brokers: list[DescribeClusterBroker] = field(default_factory=list[DescribeClusterBroker])
    cluster_authorized_operations: int = -2147483648
