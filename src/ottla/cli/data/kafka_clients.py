"""librdkafka's producer and consumer as the tools use them: errors in words, stopping on a signal, waiting for room."""

import logging
import re
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from ottla.cli.common.output import CommandError, warn
from ottla.cli.data.client_properties import ConsumerSettings, ProducerSettings, show_notes
from ottla.client.presence import connection_failed

POLL_S = 0.1
"""How long one call into librdkafka may last: signals are only seen between calls."""
SAY_AGAIN_S = 30.0
EXIT_INTERRUPTED = 130
MISSING_TOPIC = (
    "it does not exist (UNKNOWN_TOPIC_OR_PARTITION): create it with kafka-topics --create; "
    "brokers create topics by themselves only with auto.create.topics.enable=true"
)
_NO_GSSAPI = "No provider for SASL mechanism GSSAPI"
NO_KERBEROS = (
    "sasl.mechanism=GSSAPI: this tool works with librdkafka, which wheels have without Kerberos; kcat and Kafka's own "
    "console tools can, and so can this one with a confluent-kafka that was built against a librdkafka with libsasl2 "
    "(pip install --no-binary confluent-kafka confluent-kafka)"
)
INTERNAL_TOPICS_PATTERN = "^__(consumer_offsets|transaction_state|share_group_state)$"

# librdkafka writes its own log lines to stderr unless it is given a logger. Errors reach people through
# `ErrorReporter`, in words; the rest of that log is for librdkafka's developers.
_silent = logging.getLogger("ottla.cli.librdkafka")
_silent.addHandler(logging.NullHandler())
_silent.propagate = False


class StopRequest:
    """Set by SIGINT or SIGTERM; the tools look at it between calls."""

    def __init__(self) -> None:
        self.signal: int | None = None

    def __bool__(self) -> bool:
        return self.signal is not None

    @property
    def exit_code(self) -> int:
        """Ctrl-C is reported as the shell does; a polite SIGTERM was obeyed and is a success."""
        return EXIT_INTERRUPTED if self.signal == signal.SIGINT else 0


@contextmanager
def stop_on_signals() -> Iterator[StopRequest]:
    request = StopRequest()
    if threading.current_thread() is not threading.main_thread():
        yield request  # only the main thread may handle signals; whoever runs a tool in another stops it there
        return

    def stop(number: int, _frame: FrameType | None) -> None:
        if request:  # asked twice: do not wait for an orderly end
            raise KeyboardInterrupt
        request.signal = number

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield request
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class ErrorReporter:
    """Says what goes wrong with a connection, the same once in a while; librdkafka keeps trying, as Kafka's do."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._said: dict[str, float] = {}
        self.last: KafkaError | None = None
        self.fatal: KafkaError | None = None

    def __call__(self, error: KafkaError) -> None:
        self.last = error
        if error.fatal():
            self.fatal = error
        if error.code() == KafkaError._ALL_BROKERS_DOWN and self._said:
            return  # the broker's own error has been reported
        text, now = in_words(error), self._now()
        if now - self._said.get(text, -SAY_AGAIN_S) >= SAY_AGAIN_S:
            self._said[text] = now
            warn(text)


_CONNECT = re.compile(r"(?:\w+://)?(\S+?):\d+/(bootstrap|\d+): Connect to \w+#(\S+) failed: (.*)$")
_THREAD_PREFIX = re.compile(r"^\[thrd:[^\]]*\]:\s*")
_HOW_LONG = re.compile(r" \(after \d+ms in state [^)]*\)$")


def in_words(error: KafkaError) -> str:
    text = _HOW_LONG.sub("", _THREAD_PREFIX.sub("", error.str()))
    if connect := _CONNECT.search(text):
        host, node, address, reason = connect.groups()
        return connection_failed(-1 if node == "bootstrap" else int(node), host, address, reason)
    if error.code() == KafkaError._UNKNOWN_TOPIC or error.code() == KafkaError._UNKNOWN_PARTITION:
        return f"the topic or partition does not exist ({text})"
    if error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART and ": ^" not in text:  # a pattern may match nothing yet
        return f"{text}: {MISSING_TOPIC}"
    return text


def error_of(exception: KafkaException) -> str:
    argument = exception.args[0] if exception.args else exception
    return in_words(argument) if isinstance(argument, KafkaError) else str(argument)


def open_producer(settings: ProducerSettings, **extra: Any) -> tuple[Producer, ErrorReporter]:
    show_notes(settings.notes)
    reporter = ErrorReporter()
    config: dict[str, Any] = {**settings.librdkafka, "error_cb": reporter, "logger": _silent, **extra}
    return _build(Producer, config), reporter


def open_consumer(settings: ConsumerSettings, **extra: Any) -> tuple[Consumer, ErrorReporter]:
    show_notes(settings.notes)
    reporter = ErrorReporter()
    config: dict[str, Any] = {**settings.librdkafka, "error_cb": reporter, "logger": _silent, **extra}
    return _build(Consumer, config), reporter


def _build(client: type[Any], config: dict[str, Any]) -> Any:
    try:
        return client(config)
    except KafkaException as exception:
        why = error_of(exception)
        words = NO_KERBEROS if _NO_GSSAPI in why else f"the client's settings do not work: {why}"
        raise CommandError(words) from exception


class BlockingSender:
    """`produce` that waits for room in the buffer, for at most `max.block.ms`, as Java's `send` does."""

    def __init__(self, producer: Producer, max_block_s: float) -> None:
        self._producer = producer
        self._max_block_s = max_block_s

    def send(self, topic: str, **record: Any) -> None:
        deadline = 0.0
        while True:
            try:
                self._producer.produce(topic, **record)
            except BufferError:
                now = time.monotonic()
                deadline = deadline or now + self._max_block_s
                if now >= deadline:
                    raise CommandError(
                        f"the buffer stayed full for {self._max_block_s:g} s (max.block.ms): "
                        "the broker does not take records as fast as they come, or does not answer"
                    ) from None
                self._producer.poll(POLL_S)
            except KafkaException as exception:
                raise CommandError(f"cannot send to {topic}: {error_of(exception)}") from exception
            else:
                self._producer.poll(0)
                return


def flush_all(producer: Producer, stop: StopRequest) -> int:
    """Wait until everything sent is acknowledged or has failed; a second signal gives up. Returns what is left."""
    left = len(producer)
    was_stopped = bool(stop)
    while left and (was_stopped or not stop):
        try:
            left = producer.flush(POLL_S)
        except SystemError:  # what becomes of a signal handler's KeyboardInterrupt inside librdkafka's callbacks
            raise KeyboardInterrupt from None
    return left


def subscribe(consumer: Consumer, *, topic: str | None, include: str | None, **callbacks: Any) -> None:
    """Subscribe to one topic or to all whose whole name matches a pattern."""
    name = topic if topic is not None else whole_name_pattern(include or "")
    try:
        consumer.subscribe([name], **callbacks)
    except KafkaException as exception:
        raise CommandError(f"cannot subscribe to {name}: {error_of(exception)}") from exception


def hiding_internal_topics(settings: ConsumerSettings) -> ConsumerSettings:
    """For a subscription by pattern: Java leaves internal topics out unless told otherwise.

    librdkafka hides them from the whole client, so this must not be used when an internal topic is asked for by name.
    """
    if not settings.exclude_internal_topics:
        return settings
    return settings._replace(librdkafka={"topic.blacklist": INTERNAL_TOPICS_PATTERN, **settings.librdkafka})


def whole_name_pattern(pattern: str) -> str:
    """Kafka's tools match whole names; older ones took quotes around the pattern and a comma for `or`."""
    bare = pattern.strip().strip("\"'")
    either = re.sub(r",(?![^{]*\})", "|", bare)  # a comma inside {1,2} is a count
    try:
        re.compile(either)
    except re.error as error:
        raise CommandError(f"`{pattern}` is not a regular expression: {error}") from error
    return f"^({either})$"


def partitions_of(client: Consumer | Producer, topic: str, timeout_s: float) -> list[int]:
    """The partitions of a topic; empty where it does not exist."""
    try:
        metadata = client.list_topics(topic, timeout=timeout_s)
    except KafkaException as exception:
        raise CommandError(f"no answer about {topic}: {error_of(exception)}") from exception
    found = metadata.topics.get(topic)
    return sorted(found.partitions) if found is not None and found.error is None else []


def commit_sync(consumer: Consumer, offsets: Sequence[TopicPartition]) -> KafkaError | None:
    """Commit and wait for the answer; the first error of a partition is the error of the commit."""
    if not offsets:
        return None
    try:
        answered = consumer.commit(offsets=list(offsets), asynchronous=False)
    except KafkaException as exception:
        error: KafkaError = exception.args[0]
        return error
    return next((entry.error for entry in answered or () if entry.error is not None), None)
