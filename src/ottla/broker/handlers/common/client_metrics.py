"""What both requests of client telemetry need."""

from ottla.broker.handlers.context import Broker, Call
from ottla.model.errors import ApiError, ErrorCode
from ottla.telemetry.pushed import ClientMetrics


def client_metrics_of(broker: Broker) -> ClientMetrics:
    if broker.client_metrics is None:
        raise ApiError(ErrorCode.UNSUPPORTED_VERSION, "this broker serves no metrics, so it takes none of clients")
    return broker.client_metrics


def client_of(call: Call) -> dict[str, str]:
    """Who pushes, in the words that subscriptions choose clients by."""
    session = call.session
    return {
        "client_id": call.client_id or "",
        "client_software_name": session.software_name,
        "client_software_version": session.software_version,
        "client_source_address": session.host,
        "client_source_port": str(session.port),
    }
