"""Kafka's request log: a line for each request that was answered, with the time it spent in each stage.

Off unless the level of `kafka.request.logger` itself is DEBUG, as with Kafka: it costs more than most requests.
"""

import json
import logging

from ottla.broker.server.answer import Answer
from ottla.protocol.apis import API

logger = logging.getLogger("kafka.request.logger")


def is_on() -> bool:
    return logging.NOTSET < logger.level <= logging.DEBUG


def write(answer: Answer) -> None:
    logger.debug("Completed request:%s", json.dumps(describe(answer)))


def describe(answer: Answer) -> dict[str, object]:
    call = answer.call
    session = call.session
    return {
        "requestHeader": {
            "requestApiKey": call.api_key,
            "requestApiVersion": call.version,
            "correlationId": answer.correlation_id,
            "clientId": call.client_id,
            "requestApiKeyName": API[call.api_key].name,
        },
        "connection": f"{session.host}:{session.port}",
        "totalTimeMs": _ms(answer.sent_ns - answer.received_ns),
        "requestQueueTimeMs": _ms(answer.dispatched_ns - answer.received_ns),
        "localTimeMs": _ms(answer.local_done_ns - answer.dispatched_ns),
        "remoteTimeMs": _ms(answer.replied_ns - answer.local_done_ns),
        "throttleTimeMs": call.throttle_ms,
        "sendTimeMs": _ms(answer.sent_ns - answer.replied_ns),
        "principal": str(session.principal),
        "listener": session.listener,
        "clientInformation": {
            "softwareName": session.software_name,
            "softwareVersion": session.software_version,
        },
    }


def _ms(nanoseconds: int) -> float:
    return round(nanoseconds / 1_000_000, 3)
