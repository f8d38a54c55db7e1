"""Clients that wait for a quota, now."""

from ottla.telemetry.declaring import attribute
from ottla.telemetry.metric import Kind, Metric


def _queue(kind: str, quota: str) -> Metric:
    doc = f"Waits for a `{quota}` that are not over. Told while somebody has such a quota."
    return attribute(f"kafka.server:type={kind}", "queue-size", Kind.GAUGE, "waits", doc)


PRODUCE = _queue("Produce", "producer_byte_rate")
FETCH = _queue("Fetch", "consumer_byte_rate")
REQUEST = _queue("Request", "request_percentage")
MUTATION = _queue("ControllerMutation", "controller_mutation_rate")
