"""What the monitor end to end has measured, as metrics."""

import time

from ottla.monitoring import metrics
from ottla.monitoring.endtoend.monitor import EndToEnd
from ottla.monitoring.endtoend.slo import BURN_WINDOWS, Delays
from ottla.monitoring.figures import Figure, Rows


def end_to_end_figures(monitor: EndToEnd) -> list[Figure]:
    now = time.time()
    name = (monitor.settings.name,)
    counts = monitor.counts
    commits = monitor.commits
    commit_ratio = commits.level.recent(now).ratio
    topics = monitor.topics
    made = [(metrics.TOPIC_CREATION, topics.creation_ms), (metrics.TOPIC_DELETION, topics.deletion_ms)]
    return [
        (metrics.PRODUCE_AVAILABILITY, [(name, monitor.produce_availability(now))]),
        (metrics.PRODUCED, [(name, counts["produced"])]),
        (metrics.PRODUCE_ERRORS, [(name, counts["produce_errors"])]),
        (metrics.PRODUCE_DELAY, _delays(name, monitor.write_delays, now)),
        (metrics.CONSUME_AVAILABILITY, [(name, monitor.consume_availability(now))]),
        (metrics.CONSUMED, [(name, counts["consumed"])]),
        (metrics.CONSUME_ERRORS, [(name, counts["consume_errors"])]),
        (metrics.LOST, [(name, counts["lost"])]),
        (metrics.DUPLICATED, [(name, counts["duplicated"])]),
        (metrics.DELAYED, [(name, counts["delayed"])]),
        (metrics.CONSUME_DELAY, _delays(name, monitor.read_delays, now)),
        (metrics.COMMIT_AVAILABILITY, [] if commit_ratio is None else [(name, commit_ratio)]),
        (metrics.COMMITS, [(name, commits.level.good)]),
        (metrics.COMMITS_FAILED, [(name, commits.level.bad)]),
        (metrics.COMMIT_DELAY, _delays(name, commits.delays, now)),
        *((metric, [] if value is None else [(name, value)]) for metric, value in made),
        (metrics.TOPIC_FAILURES, [(name, topics.failures)]),
        (metrics.PARTITION_AVAILABILITY, _partitions(monitor, now)),
        *_levels(monitor, now),
    ]


def _delays(name: tuple[str, ...], delays: Delays, now_s: float) -> Rows:
    return [((*name, quantile), value) for quantile, value in delays.summary(now_s).items()]


def _partitions(monitor: EndToEnd, now_s: float) -> Rows:
    return [
        (
            (monitor.settings.name, str(number), "" if place.leader is None else str(place.leader)),
            monitor.partition_availability(number, now_s),
        )
        for number, place in sorted(monitor.leaders.places.items())
        if number in monitor.by_partition
    ]


def _levels(monitor: EndToEnd, now_s: float) -> list[Figure]:
    levels = [
        ((monitor.settings.name, sli), level) for sli, level in (("write", monitor.write), ("read", monitor.read))
    ]
    ratios = [(labels, level.in_window(now_s).ratio) for labels, level in levels]
    return [
        (metrics.SLI_GOOD, [(labels, level.good) for labels, level in levels]),
        (metrics.SLI_BAD, [(labels, level.bad) for labels, level in levels]),
        (metrics.SLI_RATIO, [(labels, ratio) for labels, ratio in ratios if ratio is not None]),
        (metrics.SLO_OBJECTIVE, [(labels, level.objective.ratio) for labels, level in levels]),
        (metrics.BUDGET_LEFT, [(labels, level.budget_left(now_s)) for labels, level in levels]),
        (
            metrics.BURN_RATE,
            [
                ((*labels, window), level.burn_rate(seconds, now_s))
                for labels, level in levels
                for window, seconds in BURN_WINDOWS.items()
            ],
        ),
    ]
