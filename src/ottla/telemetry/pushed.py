"""Clients that push their metrics (KIP-714): who they are, when they may, and what they said last. Pure.

Bounded in every way: so many clients are remembered, so many series are told, and a client that is silent for three of
its intervals is forgotten.
"""

import re
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from uuid import UUID

import cramjam

from ottla.model.errors import ApiError, ErrorCode
from ottla.protocol.compression import Codec, decompress
from ottla.protocol.errors import CorruptBatch
from ottla.telemetry import subscriptions
from ottla.telemetry.metric import Kind, Metric, Row, Table
from ottla.telemetry.otlp import BadMetrics, Point, decode
from ottla.telemetry.recent import RecentTimes
from ottla.telemetry.subscriptions import Subscription, Wanted

NO_INSTANCE = UUID(int=0)
CODECS = (Codec.ZSTD, Codec.LZ4, Codec.GZIP, Codec.SNAPPY)
INSTANCES_MAX = 16_384
SILENT_INTERVALS_MAX = 3
INFLATION_MAX = 100
PREFIX = "ottla_client_"
OWN_LABELS = ("client_id", "client_instance_id", "client_software_name", "client_software_version")

Series = tuple[str, tuple[tuple[str, str], ...]]
"""Name and attributes."""


class Instance:
    """One client, as long as it lives."""

    __slots__ = ("client", "got_ms", "has_ended", "may_ask", "pushed_ms", "series", "version", "wanted")

    def __init__(self, client: Mapping[str, str], wanted: Wanted, version: int) -> None:
        self.client = client
        self.wanted = wanted
        self.version = version
        self.got_ms = self.pushed_ms = -1
        self.may_ask = True
        """Whether it may ask what to push before its time: it was told to, or never did."""
        self.has_ended = False
        self.series: dict[Series, tuple[Point, float]] = {}


def read_points(codec: int, data: bytes, plain_bytes_max: int = 16 * 1024 * 1024) -> list[Point]:
    """The figures in a push; ApiError if there are none to be read. Slow for large ones: meant for a thread."""
    try:
        return list(decode(_inflated(Codec(codec), data, plain_bytes_max)))
    except (BadMetrics, CorruptBatch, cramjam.DecompressionError) as error:
        raise ApiError(ErrorCode.INVALID_RECORD, f"the metrics cannot be read: {error}") from None


def _inflated(codec: Codec, data: bytes, bytes_max: int) -> bytes:
    """Into a buffer of a size that is known before: a few bytes may stand for gigabytes."""
    if codec in (Codec.NONE, Codec.SNAPPY):  # snappy says how long it becomes, and cannot become much longer
        return bytes(decompress(codec, data))
    module = {Codec.GZIP: cramjam.gzip, Codec.LZ4: cramjam.lz4, Codec.ZSTD: cramjam.zstd}[codec]
    room = bytearray(min(bytes_max, INFLATION_MAX * len(data) + 64 * 1024))
    return bytes(memoryview(room)[: module.decompress_into(data, room)])


class ClientMetrics:
    """`series_max` and `bytes_max` are settings, asked for when they count."""

    def __init__(self, series_max: Callable[[], int], bytes_max: Callable[[], int], new_id: Callable[[], UUID]) -> None:
        self._series_max = series_max
        self._bytes_max = bytes_max
        self._new_id = new_id
        self._subscriptions: dict[str, Subscription] = {}
        self._version = 0
        self._instances: OrderedDict[UUID, Instance] = OrderedDict()  # least recently heard of first
        self._series = 0
        self.times = RecentTimes()
        """How long it took to read and keep a push."""
        self.unknown = self.throttled = self.taken = self.failed = self.dropped = 0

    def use(self, configs: Mapping[str, Mapping[str, str]]) -> None:
        """The subscriptions as they are now."""
        self._subscriptions = {name: subscriptions.parse(each) for name, each in configs.items() if each}
        self._version += 1

    def __len__(self) -> int:
        return len(self._instances)

    # What clients ask

    def subscribe(self, instance_id: UUID, client: Mapping[str, str], now_ms: int) -> tuple[UUID, Wanted]:
        """Which id the client has from now on, and what it is to push. ApiError if it comes too early."""
        if instance_id == NO_INSTANCE:
            instance_id = self._new_id()
        instance = self._find(instance_id, client)
        last = max(instance.got_ms, instance.pushed_ms)
        if not instance.may_ask and now_ms - last < instance.wanted.interval_ms:
            self.throttled += 1
            raise ApiError(ErrorCode.THROTTLING_QUOTA_EXCEEDED, "the client asks before its push interval is over")
        instance.got_ms, instance.may_ask = now_ms, False
        self._heard_of(instance_id, now_ms)
        return instance_id, instance.wanted

    def check(
        self, instance_id: UUID, client: Mapping[str, str], subscription_id: int, codec: int, size: int, now_ms: int,
        *, terminating: bool = False,
    ) -> None:  # fmt: skip
        """Whether a client may push this now; ApiError tells it what is wrong."""
        if instance_id == NO_INSTANCE:
            raise ApiError(ErrorCode.INVALID_REQUEST, "a push has the id that the client was given")
        instance = self._find(instance_id, client)
        if instance.has_ended:
            raise ApiError(ErrorCode.INVALID_REQUEST, "the client has said that it ends, and pushes again")
        too_early = (
            instance.pushed_ms >= 0
            and instance.got_ms <= instance.pushed_ms
            and now_ms - instance.pushed_ms < instance.wanted.interval_ms
        )
        if too_early and not terminating:
            self.throttled += 1
            raise ApiError(ErrorCode.THROTTLING_QUOTA_EXCEEDED, "the client pushes before its interval is over")
        instance.pushed_ms = now_ms
        if subscription_id != instance.wanted.id:
            self.unknown += 1
            instance.may_ask = True
            raise ApiError(ErrorCode.UNKNOWN_SUBSCRIPTION_ID, "what is to be pushed has changed: ask again")
        if size > self._bytes_max():
            raise ApiError(ErrorCode.TELEMETRY_TOO_LARGE, f"telemetry.max.bytes is {self._bytes_max()}")
        if codec != Codec.NONE and codec not in CODECS:
            instance.may_ask = True
            raise ApiError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, f"there is no codec {codec}")
        instance.has_ended = terminating
        self._heard_of(instance_id, now_ms)

    def take(self, instance_id: UUID, points: Sequence[Point]) -> None:
        """What a client that was checked has said."""
        instance = self._instances.get(instance_id)
        for point in points if instance is not None else ():
            self._put(instance, point)  # type: ignore[arg-type]
        self.taken += bool(points)

    def _find(self, instance_id: UUID, client: Mapping[str, str]) -> Instance:
        known = self._instances.get(instance_id)
        if known is None or known.version != self._version:
            named = {**client, "client_instance_id": str(instance_id)}
            wanted = subscriptions.wanted_of(named, self._subscriptions)
            if known is None:
                known = self._instances[instance_id] = Instance(named, wanted, self._version)
                if len(self._instances) > INSTANCES_MAX:
                    self._forget(next(iter(self._instances)))
            else:
                known.may_ask |= wanted != known.wanted
                known.wanted, known.version = wanted, self._version
        return known

    def _put(self, instance: Instance, point: Point) -> None:
        key = (point.name, point.attributes)
        known = instance.series.get(key)
        if known is None:
            if self._series >= self._series_max():
                self.dropped += 1
                return
            self._series += 1
        value = point.value + (known[1] if point.is_delta and known is not None else 0)
        instance.series[key] = (point, value)

    def _heard_of(self, instance_id: UUID, now_ms: int) -> None:
        self._instances.move_to_end(instance_id)
        self.expire(now_ms)

    def expire(self, now_ms: int) -> None:
        """Forget those that are silent for too long, and what they said."""
        while self._instances:
            oldest, instance = next(iter(self._instances.items()))
            last = max(instance.got_ms, instance.pushed_ms)
            patience = SILENT_INTERVALS_MAX * instance.wanted.interval_ms if not instance.has_ended else 0
            if now_ms - last <= patience:
                return
            self._forget(oldest)

    def _forget(self, instance_id: UUID) -> None:
        self._series -= len(self._instances.pop(instance_id).series)

    # What is told

    def tables(self) -> Iterator[Table]:
        """Everything that clients said last, one table for each metric and set of attributes."""
        found: dict[tuple[str, tuple[str, ...]], tuple[Metric, list[Row]]] = {}
        for instance in tuple(self._instances.values()):
            own = tuple(instance.client.get(label, "") for label in OWN_LABELS)
            for (name, attributes), (point, value) in instance.series.items():
                labels = tuple(_plain(key) for key, _ in attributes)
                known = found.get((name, labels))
                if known is None:
                    known = found[name, labels] = (_metric(point, labels), [])
                known[1].append(((*own, *(text for _, text in attributes)), (value,)))
        for metric, rows in found.values():
            yield Table((metric,), rows)


def _metric(point: Point, labels: tuple[str, ...]) -> Metric:
    keys = tuple(label if label not in OWN_LABELS else f"pushed_{label}" for label in labels)
    unit = f" ({point.unit})" if point.unit else ""
    return Metric(
        PREFIX + _plain(point.name).removeprefix("org_apache_kafka_"),
        f"ottla.client:type={point.name}",
        "Value",
        Kind.GAUGE,
        point.unit,
        f"Pushed by clients: {point.name}{unit}.",
        (*OWN_LABELS, *keys),
    )


def _plain(name: str) -> str:
    plain = re.sub(r"[^a-zA-Z0-9_]", "_", name)
    return plain if plain[:1].isalpha() or plain[:1] == "_" else f"_{plain}"
