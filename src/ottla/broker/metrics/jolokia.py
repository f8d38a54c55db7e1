"""/jolokia on the listener for metrics: the same figures as MBeans."""

import json
import math
import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ottla.broker.metrics.scraping import read_groups
from ottla.http.application import json_answer
from ottla.telemetry import jolokia
from ottla.telemetry.jmx import Beans, ObjectName, Rates, add_beans, is_meter, parse, template_of
from ottla.telemetry.metric import Metric, Table
from ottla.telemetry.registry import Telemetry

PATH = "/jolokia"
REQUESTS_MAX = 1_000
TICK_SECONDS = 5
WANTED_SECONDS = 600.0
"""How long rates are kept up after somebody asked for MBeans."""
_WEIGHTS = tuple(1 - math.exp(-TICK_SECONDS / (60 * minutes)) for minutes in (1, 5, 15))
_TOPIC = ",topic={topic}"


class Meters:
    """Rates of meters, as Kafka's have them; kept up only while somebody asks for MBeans."""

    def __init__(self, telemetry: Telemetry) -> None:
        self._telemetry = telemetry
        self._began = time.monotonic()
        self._wanted_at = -math.inf
        self._seen: dict[tuple[Metric, tuple[str, ...]], tuple[float, list[float]]] = {}

    def wanted(self) -> None:
        self._wanted_at = time.monotonic()

    def tick(self) -> None:
        """Every five seconds."""
        if time.monotonic() - self._wanted_at > WANTED_SECONDS:
            self._seen.clear()
            return
        for group in self._telemetry.groups:
            if any(map(is_meter, group)):
                self._take(self._telemetry.table(group))

    def _take(self, table: Table) -> None:
        for metric, labels, count in _counts(table):
            last, rates = self._seen.get((metric, labels), (count, [0.0, 0.0, 0.0]))
            rate = (count - last) / TICK_SECONDS
            moved = [old + weight * (rate - old) for old, weight in zip(rates, _WEIGHTS, strict=True)]
            self._seen[metric, labels] = (count, moved)

    def rates(self, table: Table) -> dict[tuple[Metric, tuple[str, ...]], Rates]:
        elapsed = max(time.monotonic() - self._began, 1e-3)
        return {
            (metric, labels): Rates(count / elapsed, *self._seen.get((metric, labels), (0, [0.0, 0.0, 0.0]))[1])
            for metric, labels, count in _counts(table)
        }


def _counts(table: Table) -> Iterator[tuple[Metric, tuple[str, ...], float]]:
    for position, metric in enumerate(table.metrics):
        if is_meter(metric):
            for labels, values in table.rows:
                count = values[position]
                assert isinstance(count, int | float)
                yield metric, labels, count


class Mbeans:
    """Reads what requests are about, and no more."""

    def __init__(self, telemetry: Telemetry, meters: Meters) -> None:
        self._telemetry = telemetry
        self._meters = meters

    async def read(self, patterns: list[ObjectName]) -> Beans:
        self._meters.wanted()
        groups = [
            group
            for group in self._telemetry.groups
            if any(pattern.may_match(name) for pattern in patterns for metric in group for name in _names(metric))
        ]
        beans: Beans = {}
        for table in await read_groups(self._telemetry, groups):
            for each in (table, *_over_all_topics(table)):
                add_beans(beans, each, self._meters.rates(each))
        return beans


def _names(metric: Metric) -> Iterator[ObjectName]:
    yield template_of(metric)
    if metric.mbean.endswith(_TOPIC):
        yield parse(metric.mbean.removesuffix(_TOPIC))


def _over_all_topics(table: Table) -> Iterator[Table]:
    """Kafka has an MBean without a topic beside those of the topics, for what went through all of them."""
    if table.metrics[0].labels != ("topic",) or not is_meter(table.metrics[0]):
        return
    metrics = tuple(metric._replace(mbean=metric.mbean.removesuffix(_TOPIC), labels=()) for metric in table.metrics)
    sums = tuple(sum(values[position] for _, values in table.rows) for position in range(len(metrics)))  # type: ignore[misc]
    yield Table(metrics, [((), sums)])


def routes(telemetry: Telemetry, meters: Meters, details: dict[str, str]) -> list[Route]:
    mbeans = Mbeans(telemetry, meters)

    async def get(request: Request) -> Response:
        path = request.scope["raw_path"].decode().partition("?")[0]
        asked = jolokia.from_path(unquote(path.removeprefix(PATH)))
        return json_answer(await reply(asked))

    async def post(request: Request) -> Response:
        try:
            asked = json.loads(await request.body() or b"null")
        except json.JSONDecodeError as error:
            return json_answer(jolokia.not_json(error))
        if not isinstance(asked, list):
            return json_answer(await reply(asked))
        return json_answer(await replies(asked[:REQUESTS_MAX]))

    async def reply(asked: Any) -> jolokia.Reply:
        return (await replies([asked]))[0]

    async def replies(asked: list[Any]) -> list[jolokia.Reply]:
        beans = await mbeans.read([pattern for each in asked for pattern in jolokia.patterns_of(each)])
        named = {name: parse(name) for name in beans}

        def find(pattern: ObjectName) -> Beans:
            if not pattern.is_pattern:
                return {name: beans[name] for name in (str(pattern),) if name in beans}
            return {name: beans[name] for name, parsed in named.items() if pattern.matches(parsed)}

        return [jolokia.answer(each, find, int(time.time()), details) for each in asked]

    paths = [PATH, PATH + "/{rest:path}"]
    return [route for path in paths for route in (Route(path, get), Route(path, post, methods=["POST"]))]
