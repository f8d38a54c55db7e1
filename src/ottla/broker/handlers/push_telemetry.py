"""PushTelemetry, key 72, version 0: metrics of a client, in OpenTelemetry's format. They are served beside our own."""

import asyncio

from ottla.broker.handlers.common.client_metrics import client_metrics_of, client_of
from ottla.broker.handlers.context import Broker, Call
from ottla.protocol.messages.push_telemetry import PushTelemetryRequest, PushTelemetryResponse
from ottla.telemetry.pushed import read_points

READ_AT_ONCE_BYTES = 4 * 1024


async def handle(broker: Broker, call: Call, request: PushTelemetryRequest) -> PushTelemetryResponse:
    metrics = client_metrics_of(broker)
    began = broker.clock.monotonic()
    now_ms = int(began * 1000)
    instance_id, data = request.client_instance_id, bytes(request.metrics)
    metrics.check(
        instance_id, client_of(call), request.subscription_id, request.compression_type, len(data), now_ms,
        terminating=request.terminating,
    )  # fmt: skip
    if data:
        try:
            if len(data) <= READ_AT_ONCE_BYTES:
                points = read_points(request.compression_type, data)
            else:
                points = await asyncio.to_thread(read_points, request.compression_type, data)
        except Exception:
            metrics.failed += 1
            raise
        metrics.take(instance_id, points)
        now = broker.clock.monotonic()
        metrics.times.note(1000 * (now - began), now)
    return PushTelemetryResponse()
