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
        self._policies: dict[str, str | None] = {}

    def __call__(self, error: KafkaError, record: Message) -> str:
        if error.code() != KafkaError.INVALID_RECORD or record.key() is not None:
            return in_words(error)
        return f"{in_words(error)}: {without_key(self._cleanup_policy(record.topic()))}"

    def _cleanup_policy(self, topic: str) -> str | None:
        if topic not in self._policies:
            resource = ConfigResource(ConfigResource.Type.TOPIC, topic)
            self._policies[topic] = _settings_of(resource, _admin(self._librdkafka)).get("cleanup.policy")
        return self._policies[topic]


def without_key(cleanup_policy: str | None) -> str:
    """What to say of a record without a key that was refused; the policy is None where it could not be learned."""
    hint = "use --reader-property parse.key=true"
    if cleanup_policy is None:
        return f"it has no key, which topics with cleanup.policy=compact do not take ({hint})"
    if "compact" not in cleanup_policy.split(","):
        return "the broker's answer names no reason that its settings show"
    return f"the topic has cleanup.policy={cleanup_policy}, so every record needs a key ({hint})"


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
