"""GetTelemetrySubscriptions, key 71, version 0: a client asks which of its metrics it is to push, and how often.

Advertised only where metrics are served (`metrics.listener`): elsewhere nobody would see them.
"""

from ottla.broker.handlers.common.client_metrics import client_metrics_of, client_of
from ottla.broker.handlers.context import Broker, Call
from ottla.protocol.messages.get_telemetry_subscriptions import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
)
from ottla.telemetry.pushed import CODECS


def handle(broker: Broker, call: Call, request: GetTelemetrySubscriptionsRequest) -> GetTelemetrySubscriptionsResponse:
    metrics = client_metrics_of(broker)
    now_ms = int(broker.clock.monotonic() * 1000)
    instance_id, wanted = metrics.subscribe(request.client_instance_id, client_of(call), now_ms)
    return GetTelemetrySubscriptionsResponse(
        client_instance_id=instance_id,
        subscription_id=wanted.id,
        accepted_compression_types=[int(codec) for codec in CODECS],
        push_interval_ms=wanted.interval_ms,
        telemetry_max_bytes=broker.settings.telemetry_max_bytes,
        delta_temporality=True,
        requested_metrics=list(wanted.metrics),
    )
