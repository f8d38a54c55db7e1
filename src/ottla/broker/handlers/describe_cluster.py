"""DescribeCluster, key 60, versions 0 to 2.

The cluster's id, its controller and its brokers, as the listener that the request came through advertises them.
There are no separate controllers to describe, and no fenced brokers to include.
"""

from ottla.broker.handlers.common import access
from ottla.broker.handlers.context import Broker, Call
from ottla.cluster.image import NO_CONTROLLER
from ottla.model.errors import ErrorCode
from ottla.protocol.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)

BROKERS = 1
CONTROLLERS = 2


def handle(broker: Broker, call: Call, request: DescribeClusterRequest) -> DescribeClusterResponse:
    if request.endpoint_type != BROKERS:
        mismatch = request.endpoint_type == CONTROLLERS
        return DescribeClusterResponse(
            error_code=ErrorCode.MISMATCHED_ENDPOINT_TYPE if mismatch else ErrorCode.UNSUPPORTED_ENDPOINT_TYPE,
            error_message=f"this is a broker's endpoint; endpoints of type {request.endpoint_type} are not described",
        )
    image = broker.metadata.image
    response = DescribeClusterResponse(cluster_id=image.cluster_id)
    for known in image.brokers.values():
        endpoint = known.endpoint(call.session.listener)
        if endpoint is not None:
            response.brokers.append(
                DescribeClusterBroker(broker_id=known.id, host=endpoint.host, port=endpoint.port, rack=known.rack)
            )
    described = {entry.broker_id for entry in response.brokers}
    response.controller_id = image.controller_id if image.controller_id in described else NO_CONTROLLER
    if request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = access.cluster_operations(broker, call)
    return response
