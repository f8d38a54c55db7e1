"""What metrics say that pages show: how long requests take, and whether service levels are kept. Pure."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ottla.monitoring.top.exposition import RequestFigures, parse

BURNS_FAST = 14.4
"""At this rate a fiftieth of a month's error budget is gone within an hour: what alerts are usually set to."""

_LEVEL = {
    "ottla_monitor_sli_ratio": "ratio",
    "ottla_monitor_slo_objective_ratio": "objective",
    "ottla_monitor_error_budget_remaining_ratio": "budget_left",
    "ottla_monitor_burn_rate": "burn_rate_1h",
}


class RequestRow(NamedTuple):
    request: str
    per_second: float | None
    """Since the look before; None at the first."""
    requests: float
    errors: float
    p50_ms: float | None
    p99_ms: float | None
    """The worst of the brokers."""


class LevelRow(NamedTuple):
    """What `ottla monitor` says of one kind of event."""

    name: str
    sli: str
    ratio: float | None
    objective: float | None
    budget_left: float | None
    burn_rate_1h: float | None


def request_rows(
    now: Mapping[str, RequestFigures], before: Mapping[str, RequestFigures], seconds: float
) -> dict[str, RequestRow]:
    """Of one broker. `before`: what it said so many seconds ago; 0 seconds where it was not asked then."""
    rows = {}
    for name, each in now.items():
        came = each.requests - before[name].requests if name in before else each.requests
        rate = max(0.0, came) / seconds if seconds > 0 else None  # a broker that was started anew counts from 0
        rows[name] = RequestRow(name, rate, each.requests, each.errors, each.p50_ms, each.p99_ms)
    return rows


def together(brokers: Iterable[Mapping[str, RequestRow]]) -> list[RequestRow]:
    """Of all of them, the busiest kind first; kinds that nobody sent are left out."""
    found: dict[str, RequestRow] = {}
    for rows in brokers:
        for name, row in rows.items():
            known = found.get(name)
            found[name] = row if known is None else RequestRow(
                name, _sum(known.per_second, row.per_second), known.requests + row.requests,
                known.errors + row.errors, _most(known.p50_ms, row.p50_ms), _most(known.p99_ms, row.p99_ms),
            )  # fmt: skip
    sent = (row for row in found.values() if row.requests)
    return sorted(sent, key=lambda row: (-(row.per_second or 0.0), -row.requests, row.request))


def _sum(one: float | None, other: float | None) -> float | None:
    return one if other is None else other if one is None else one + other


def _most(one: float | None, other: float | None) -> float | None:
    return one if other is None else other if one is None else max(one, other)


def levels_in(text: str) -> list[LevelRow]:
    found: dict[tuple[str, str], dict[str, float]] = {}
    for each in parse(text):
        key = _LEVEL.get(each.name)
        if key is None or each.labels.get("window", "1h") != "1h":
            continue
        found.setdefault((each.labels.get("name", ""), each.labels.get("sli", "")), {})[key] = each.value
    return [
        LevelRow(name, sli, *(own.get(key) for key in _LEVEL.values())) for (name, sli), own in sorted(found.items())
    ]


def level_words(levels: Iterable[LevelRow]) -> list[str]:
    """What is wrong with them, for the line of health; nothing if all are kept."""
    words = []
    for row in levels:
        what = f"{row.sli}s of {row.name}" if row.name else f"{row.sli}s"
        if row.budget_left is not None and row.budget_left < 0:
            kept = "" if row.ratio is None or row.objective is None else (
                f": {row.ratio:.3%} were good, {row.objective:.3%} should be"
            )  # fmt: skip
            words.append(f"the objective for {what} is broken{kept}")
        elif row.burn_rate_1h is not None and row.burn_rate_1h >= BURNS_FAST:
            words.append(f"the error budget of {what} is used up {row.burn_rate_1h:.0f} times as fast as it may be")
    return words
