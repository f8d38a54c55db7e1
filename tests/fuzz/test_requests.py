"""Mutated requests: whatever comes, the broker lives, others' data stays, and nothing leaks.

A failure names its seed; OTTLA_SEED repeats it. The requests of the last connection are kept beside the broker's log.
"""

import random
import socket
import struct
import uuid
from pathlib import Path

import pytest
from tests.chance import SEED, SOAK

from ottla.broker.handlers.table import SERVED, advertised
from ottla.model.errors import ErrorCode
from ottla.protocol.apis import API, REQUEST_FLEXIBLE_FROM, ApiKey, response_header_is_flexible
from ottla.protocol.codec import decode, decode_from, encode
from ottla.protocol.errors import MalformedMessage
from ottla.protocol.frames import read_request_header, read_response_header, request_frame
from ottla.protocol.messages.create_partitions import CreatePartitionsRequest
from ottla.protocol.messages.create_topics import CreateTopicsRequest
from ottla.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse, DeleteTopicState
from ottla.protocol.messages.fetch import FetchResponse
from ottla.protocol.messages.metadata import MetadataRequest, MetadataResponse
from ottla.protocol.records import Codec, NewRecord, decode_batch, encode_batch
from ottla.protocol.schema import Field, Message, TopLevel
from ottla.testing import RunningBroker, broker
from ottla.testing.process import open_descriptors, open_sockets, resident_bytes
from ottla.testing.requests import FETCH_VERSION, create_topic, fetch_request, produce
from ottla.testing.waiting import wait_until
from ottla.testing.wire import WireConnection

MUTANTS = 110_000 if SOAK else 5_000
PER_CONNECTION = 4
HEADER_BYTES = 14  # of a request by the client "fuzz"
TIDY_EVERY = 2_000
RESIDENT_GROWTH_MAX = 64 << 20
PARTITIONS_MAX = 20  # a mutant that asks for ten thousand partitions is a valid request, and only costs time

TOPICS = [f"fuzz-{number}" for number in range(4)]
BYSTANDER = "bystander-" + "x" * 60  # no mutation of another name becomes this one
GROUPS = ["readers", "g", "", "a group with spaces"]
CONFIGS = ["retention.ms", "segment.ms", "max.message.bytes", "cleanup.policy", "compression.type", "no.such.config"]
SETTINGS = {
    "auto.create.topics.enable": False,
    "log.segment.delete.delay.ms": 0,
    "group.min.session.timeout.ms": 1,
    "connections.max.idle.ms": 5_000,
}

_INTEGERS = {"int8": 8, "int16": 16, "uint16": 16, "int32": 32, "uint32": 32, "int64": 64}
_RANGES: dict[str, tuple[int, int]] = {
    "index": (0, 3), "partition": (0, 3), "partition_index": (0, 3), "num_partitions": (1, 3), "count": (1, 4),
    "replication_factor": (1, 1), "max_wait_ms": (0, 5), "timeout_ms": (0, 50), "rebalance_timeout_ms": (1, 200),
    "session_timeout_ms": (1, 500), "acks": (-1, 1), "max_bytes": (0, 1 << 20), "partition_max_bytes": (0, 1 << 20),
    "fetch_offset": (0, 20), "timestamp": (-6, 3), "offset": (-1, 20), "committed_offset": (0, 20), "min_bytes": (0, 9),
    "resource_type": (2, 2), "config_operation": (0, 3), "session_id": (0, 2), "session_epoch": (-1, 2),
    "generation_id": (-1, 3), "generation_id_or_member_epoch": (-1, 3), "key_type": (0, 1), "replica_id": (-1, -1),
}  # fmt: skip


class Generator:
    """Valid requests with random contents, near enough to sense that handlers get to work on them."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self.topic_ids: list[uuid.UUID] = [uuid.UUID(int=0)]

    def request(self, key: ApiKey, version: int) -> TopLevel:
        message = self._message(API[key].request_class, version)
        assert isinstance(message, TopLevel)
        return message

    def _message(self, cls: type[Message], version: int) -> Message:
        values = {
            field.name: self._field(cls, field, version)
            for field in cls.FIELDS
            if field.in_version(version) and (field.tag is None or self._chance.random() < 0.3)
        }
        return cls(**values)

    def _field(self, cls: type[Message], field: Field, version: int) -> object:
        if field.nullable_in(version) and self._chance.random() < 0.15:
            return None
        if field.array:
            return [self._value(cls, field, version) for _ in range(self._chance.choice((0, 1, 1, 1, 2, 3)))]
        return self._value(cls, field, version)

    def _value(self, cls: type[Message], field: Field, version: int) -> object:
        chance = self._chance
        kind = field.kind
        if not isinstance(kind, str):
            return self._message(kind, version)
        if kind in _INTEGERS:
            if field.name in _RANGES and chance.random() < 0.9:
                return chance.randint(*_RANGES[field.name])
            return self._integer(kind)
        match kind:
            case "bool":
                return chance.random() < 0.5
            case "float64":
                return chance.random() * 100
            case "uuid":
                return (
                    chance.choice(self.topic_ids) if chance.random() < 0.9 else uuid.UUID(int=chance.getrandbits(128))
                )
            case "records":
                return self._records()
            case "bytes":
                return chance.randbytes(chance.randrange(40))
            case _:
                return self._text(cls, field.name)

    def _integer(self, kind: str) -> int:
        bits = _INTEGERS[kind]
        low, high = (0, (1 << bits) - 1) if kind.startswith("u") else (-(1 << (bits - 1)), (1 << (bits - 1)) - 1)
        value: int = self._chance.choice((0, 1, -1, 2, 7, 100, low, high))
        return max(low, min(high, value))

    def _text(self, cls: type[Message], name: str) -> str:
        chance = self._chance
        if "Config" in cls.__name__ and name == "name":
            return chance.choice(CONFIGS)
        if name in {"name", "topic", "topics", "topic_name", "resource_name"}:
            return chance.choice(TOPICS)
        if "group" in name or name in {"key", "coordinator_keys"}:
            return chance.choice(GROUPS)
        return chance.choice(("", "x", "consumer", "range", "1000", "é" * 9, "client-1"))

    def _records(self) -> bytearray:
        chance = self._chance
        records = [
            NewRecord(chance.choice((None, b"k")), chance.randbytes(chance.randrange(50)), 1_700_000_000_000 + n)
            for n in range(chance.randrange(1, 4))
        ]
        producer = chance.choice((-1, -1, 0, 5))
        return encode_batch(
            records, codec=chance.choice(list(Codec)), producer_id=producer,
            producer_epoch=-1 if producer < 0 else 0, base_sequence=-1 if producer < 0 else chance.randrange(3),
        )  # fmt: skip


class Mutator:
    """Changes to encoded requests: bits, numbers, lengths, and parts of one request inside another."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._earlier = [b"\x00" * 64]

    def mutate(self, frame: bytes) -> bytes:
        """A frame with one to four changes.

        Mostly its header is spared and its size made right again, so that the change gets further in.
        """
        chance = self._chance
        spared = HEADER_BYTES if chance.random() < 0.9 else 0
        head, body = frame[4 : 4 + spared], bytearray(frame[4 + spared :])
        for _ in range(chance.choice((1, 1, 1, 2, 4))):
            chance.choice((self._flip, self._flip, self._overwrite, self._cut, self._insert, self._splice))(body)
        self._earlier = [*self._earlier[-50:], frame[4 + HEADER_BYTES :]]
        size = len(head) + len(body)
        announced = size if chance.random() < 0.95 else chance.choice((0, -1, size + 1, size - 1, 2**31 - 1))
        return struct.pack(">i", announced) + head + bytes(body)

    def _somewhere(self, data: bytes | bytearray) -> int:
        return self._chance.randrange(len(data) + 1)

    def _flip(self, body: bytearray) -> None:
        if body:
            body[self._chance.randrange(len(body))] ^= 1 << self._chance.randrange(8)

    def _overwrite(self, body: bytearray) -> None:
        value = self._chance.choice(
            (b"\xff" * 4, b"\x7f\xff\xff\xff", b"\x80\x00", b"\x00\x00", b"\xff", b"\x00", b"\x01")
        )
        start = self._somewhere(body)
        if start + len(value) <= len(body):
            body[start : start + len(value)] = value

    def _cut(self, body: bytearray) -> None:
        start = self._somewhere(body)
        del body[start : start + self._chance.choice((1, 2, 4, 1000))]

    def _insert(self, body: bytearray) -> None:
        start = self._somewhere(body)
        body[start:start] = self._chance.randbytes(self._chance.choice((1, 2, 4, 30)))

    def _splice(self, body: bytearray) -> None:
        other = self._chance.choice(self._earlier)
        body[self._somewhere(body) :] = other[self._somewhere(other) :]


def _asks_for_too_much(frame: bytes) -> bool:
    """Whether it is a valid request for so many partitions that serving it would take long."""
    try:
        header = read_request_header(frame[4:], REQUEST_FLEXIBLE_FROM)
        if header.api_key == ApiKey.CREATE_TOPICS:
            topics = decode(CreateTopicsRequest, header.version, frame[4:], header.body_start).topics
            return any(topic.num_partitions > PARTITIONS_MAX for topic in topics)
        if header.api_key == ApiKey.CREATE_PARTITIONS:
            grown = decode(CreatePartitionsRequest, header.version, frame[4:], header.body_start).topics
            return any(topic.count > PARTITIONS_MAX for topic in grown)
    except (MalformedMessage, KeyError, AssertionError):
        return False
    return False


def _versions() -> list[tuple[ApiKey, int]]:
    """Every API and version that is served (Produce is advertised below 3, but not served there)."""
    ranges = {
        ApiKey(api.key): (max(api.min_version, API[api.key].min_version), api.max_version) for api in advertised()
    }
    return [(key, version) for key in SERVED for version in range(ranges[key][0], ranges[key][1] + 1)]


class Bystander:
    """Writes and reads on its own connection all the while."""

    def __init__(self, running: RunningBroker) -> None:
        self._connection = WireConnection(running.host, running.port)
        self._written = 0
        assert create_topic(self._connection, BYSTANDER) == ErrorCode.NONE
        for topic in TOPICS:
            assert create_topic(self._connection, topic) == ErrorCode.NONE

    def close(self) -> None:
        self._connection.close()

    def look(self) -> None:
        answer = produce(self._connection, BYSTANDER, 0, [b"record %d" % self._written])
        assert (answer.error_code, answer.base_offset) == (ErrorCode.NONE, self._written)
        self._written += 1

    def read_everything(self) -> None:
        found: list[bytes | None] = []
        while len(found) < self._written:
            fetched = self._connection.call(fetch_request(BYSTANDER, 0, len(found)), FETCH_VERSION, FetchResponse)
            records = bytes(fetched.responses[0].partitions[0].records or b"")
            assert records, f"only {len(found)} of {self._written} records are there"
            (size,) = struct.unpack_from(">i", records, 8)
            found += [record.value for record in decode_batch(records[: size + 12])]
        assert found == [b"record %d" % number for number in range(self._written)]

    def tidy(self) -> list[uuid.UUID]:
        """Delete topics that mutants created, put back those they deleted; the ids of what is there."""
        told = self._connection.call(MetadataRequest(topics=None), 12, MetadataResponse)
        names = {topic.name for topic in told.topics if topic.name is not None and not topic.is_internal}
        gone = [DeleteTopicState(name=name) for name in sorted(names - {*TOPICS, BYSTANDER})]
        self._connection.call(DeleteTopicsRequest(topics=gone, timeout_ms=5000), 6, DeleteTopicsResponse)
        for topic in TOPICS:
            if topic not in names:
                assert create_topic(self._connection, topic) == ErrorCode.NONE
        told = self._connection.call(MetadataRequest(topics=None), 12, MetadataResponse)
        return [topic.topic_id for topic in told.topics if topic.name in TOPICS]


def _send(running: RunningBroker, frames: list[bytes]) -> None:
    """Send, read what comes for a moment, and go."""
    with socket.create_connection((running.host, running.port), 10) as connection:
        try:
            for frame in frames:
                connection.sendall(frame)
            connection.shutdown(socket.SHUT_WR)
            connection.settimeout(0.02)
            while connection.recv(1 << 16):
                pass
        except OSError:
            return  # refused, reset, or still waiting: all are fine


@pytest.mark.timeout(3600 if SOAK else 600)
def test_mutated_requests(tmp_path: Path) -> None:
    chance = random.Random(SEED)
    generator, mutator = Generator(chance), Mutator(chance)
    versions = _versions()
    with broker(SETTINGS, data_dir=tmp_path) as running:
        bystander = Bystander(running)
        before_sockets = open_sockets(running.pid)
        before_descriptors = before_bytes = 0
        sent = mutants = 0
        while mutants < MUTANTS:
            if sent % TIDY_EVERY == 0:
                generator.topic_ids = [*bystander.tidy(), uuid.UUID(int=0)]
            if sent == TIDY_EVERY:  # by now every handler has run and every codec is compiled
                wait_until(lambda: open_sockets(running.pid) <= before_sockets, "connections are let go")
                before_descriptors, before_bytes = open_descriptors(running.pid), resident_bytes(running.pid)
            frames: list[bytes] = []
            while len(frames) < PER_CONNECTION:
                key, version = chance.choice(versions)
                flexible = version >= REQUEST_FLEXIBLE_FROM[key]
                body = encode(generator.request(key, version), version)
                frame = request_frame(key, version, sent, "fuzz", body, flexible=flexible)
                if chance.random() < 0.8:
                    frame = mutator.mutate(frame)
                    mutants += 1
                if not _asks_for_too_much(frame):
                    frames.append(frame)
            (tmp_path / "last-requests.bin").write_bytes(b"".join(frames))
            _send(running, frames)
            sent += len(frames)
            if sent % 40 == 0:
                bystander.look()
            assert running.running, f"the broker died after request {sent} of seed {SEED}\n{running.log_text()[-3000:]}"
        generator.topic_ids = bystander.tidy()
        bystander.read_everything()
        words = f"after {sent} requests of seed {SEED}"
        assert "Traceback" not in running.log_text(), f"{words}\n{_tracebacks(running.log_text())}"
        wait_until(lambda: open_sockets(running.pid) <= before_sockets, f"connections are let go, {words}")
        wait_until(
            lambda: open_descriptors(running.pid) <= before_descriptors + 20,
            f"descriptors are given back, {words}: {open_descriptors(running.pid)} of {before_descriptors}",
        )
        growth = resident_bytes(running.pid) - before_bytes
        assert growth < RESIDENT_GROWTH_MAX, f"{growth >> 20} MB more {words}"
        bystander.close()
        print(
            f"\n{sent:,} requests, {mutants:,} of them mutated, seed {SEED}: "
            f"{growth / 2**20:.1f} MB more resident than after {TIDY_EVERY}"
        )


def _tracebacks(log: str) -> str:
    """The first few failures in the log, whole."""
    lines = log.splitlines()
    found = [number for number, line in enumerate(lines) if line.startswith("Traceback")]
    return "\n".join("\n".join(lines[max(0, number - 1) : number + 25]) for number in found[:5])


def test_every_api_and_version_is_answered_in_that_version(ottla_fresh_broker: RunningBroker) -> None:
    """Valid requests, not mutated: the answer parses to its last byte."""
    running = ottla_fresh_broker
    chance = random.Random(SEED)
    generator = Generator(chance)
    bystander = Bystander(running)
    for key, version in _versions():
        generator.topic_ids = bystander.tidy()
        request = generator.request(key, version)
        if hasattr(request, "acks"):
            request.acks = -1
        if _parks_for_long(request):
            continue
        with WireConnection(running.host, running.port) as connection:
            connection.send(connection.frame(request, version))
            frame = connection.read_frame()
        correlation_id, start = read_response_header(frame, flexible=response_header_is_flexible(key, version))
        assert correlation_id == connection.last_correlation_id
        if key is ApiKey.API_VERSIONS and struct.unpack_from(">h", frame, start) == (ErrorCode.INVALID_REQUEST,):
            continue  # a software name that breaks the rules; answered so on purpose
        _, end = decode_from(API[key].response_class, version, frame, start)
        assert end == len(frame), f"{key.name} v{version}, seed {SEED}: {len(frame) - end} bytes too many"
    assert "Traceback" not in running.log_text(), f"seed {SEED}\n{_tracebacks(running.log_text())}"
    bystander.read_everything()
    bystander.close()


def _parks_for_long(request: TopLevel) -> bool:
    return any(getattr(request, name, 0) > 10_000 for name in ("max_wait_ms", "rebalance_timeout_ms"))
