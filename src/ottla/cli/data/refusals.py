"""Why a broker refused something, where librdkafka passes on a code and the reason is in the broker's settings.

Asking for settings can fail too, for want of a permission for instance: then the words name the setting alone.
"""

import logging
import time
from collections.abc import Mapping

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer
from confluent_kafka.admin import AdminClient, ConfigResource

from ottla.cli.common.output import warn
from ottla.cli.data.kafka_clients import MISSING_TOPIC, POLL_S, in_words

ASK_S = 5.0
MISSING_S = 3.0
"""How long a topic may be missing before that is said: it may be about to be created by being written to."""
LOWEST, HIGHEST = "group.min.session.timeout.ms", "group.max.session.timeout.ms"
_CONNECTION = (
    "bootstrap.servers",
    "client.id",
    "security.",
    "sasl.",
    "ssl.",
    "enable.ssl",
    "oauth",
    "socket.",
    "broker.",
)
_silent = logging.getLogger("ottla.cli.librdkafka")


class WhyNotSent:
    """Reasons for a producer's records; a topic's settings are asked for once, however many of its records failed."""

    def __init__(self, librdkafka: Mapping[str, object]) -> None:
        self._librdkafka = librdkafka
        self._settings: dict[str, Mapping[str, str]] = {}

    def __call__(self, error: KafkaError, record: Message) -> str:
        if error.code() != KafkaError.INVALID_RECORD:
            return in_words(error)
        reason = why_invalid(self._topic_settings(record.topic()), has_key=record.key() is not None)
        return f"{in_words(error)}: {reason}" if reason else in_words(error)

    def _topic_settings(self, topic: str) -> Mapping[str, str]:
        if topic not in self._settings:
            resource = ConfigResource(ConfigResource.Type.TOPIC, topic)
            self._settings[topic] = _settings_of(resource, _admin(self._librdkafka))
        return self._settings[topic]


def why_invalid(settings: Mapping[str, str], *, has_key: bool) -> str:
    """What to say of a record that was refused as invalid; there are no settings where they could not be learned."""
    hint = "use --reader-property parse.key=true"
    checked = [part for part in ("value", "key") if settings.get(f"confluent.{part}.schema.validation") == "true"]
    policy = settings.get("cleanup.policy")
    reasons = []
    if not has_key and policy is None:
        reasons.append(f"it has no key, which topics with cleanup.policy=compact do not take ({hint})")
    elif not has_key and "compact" in str(policy).split(","):
        reasons.append(f"the topic has cleanup.policy={policy}, so every record needs a key ({hint})")
    if checked:
        named = " and ".join(f"confluent.{part}.schema.validation=true" for part in checked)
        parts = " and ".join(f"{part}s" for part in checked)
        reasons.append(
            f"the topic has {named}, so its {parts} need the id of a schema that the registry has for it "
            "(ottla avro-console-producer, json-schema-console-producer and protobuf-console-producer write it)"
        )
    return "; ".join(reasons) or ("" if has_key else "the broker's answer names no reason that its settings show")


def why_not_read(error: KafkaError, librdkafka: Mapping[str, object]) -> str:
    if error.code() != KafkaError.INVALID_SESSION_TIMEOUT:
        return in_words(error)
    return f"{in_words(error)}: {session_bounds(librdkafka.get('session.timeout.ms'), _broker_settings(librdkafka))}"


def session_bounds(session_timeout_ms: object, settings: Mapping[str, str]) -> str:
    given = "the session timeout" if session_timeout_ms is None else f"session.timeout.ms={session_timeout_ms}"
    lowest, highest = (f"{name}={settings[name]}" if name in settings else name for name in (LOWEST, HIGHEST))
    return f"{given} must lie between the broker's {lowest} and {highest}"


def warn_if_missing(client: Producer | Consumer, topic: str) -> None:
    """Say that there is no such topic, before minutes pass in silence. The client goes on: somebody may create it."""
    deadline = time.monotonic() + MISSING_S
    while True:
        try:
            found = client.list_topics(topic, timeout=MISSING_S).topics.get(topic)
        except KafkaException:
            return  # no broker answers: that is said by others
        if found is None or found.error is None or found.error.code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
            return
        if time.monotonic() >= deadline:
            break
        time.sleep(POLL_S)
    warn(f"topic '{topic}': {MISSING_TOPIC}; waiting for it")


def _broker_settings(librdkafka: Mapping[str, object]) -> dict[str, str]:
    admin = _admin(librdkafka)
    try:
        broker_id = min(admin.list_topics(timeout=ASK_S).brokers)  # any: brokers of one cluster are set up alike
    except (KafkaException, ValueError):
        return {}
    return _settings_of(ConfigResource(ConfigResource.Type.BROKER, str(broker_id)), admin)


def _settings_of(resource: ConfigResource, admin: AdminClient) -> dict[str, str]:
    try:
        (answer,) = admin.describe_configs([resource], request_timeout=ASK_S).values()
        return {name: entry.value for name, entry in answer.result(2 * ASK_S).items() if entry.value is not None}
    except (KafkaException, TimeoutError):
        return {}


def _admin(librdkafka: Mapping[str, object]) -> AdminClient:
    connection = {name: value for name, value in librdkafka.items() if name.startswith(_CONNECTION)}
    return AdminClient({**connection, "logger": _silent})
