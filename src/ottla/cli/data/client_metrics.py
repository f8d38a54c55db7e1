"""`--print-metrics`: librdkafka's own figures in the shape in which Kafka's tools print theirs."""

import json
import time
from collections.abc import Callable
from typing import Any

INTERVAL_MS = 500
LAST_FIGURES_WAIT_S = 2.0

# Figures of a broker connection and of a topic that say something to the reader of a benchmark.
_NODE_WINDOWS = ("rtt", "int_latency", "outbuf_latency", "throttle")
_NODE_TOTALS = ("tx", "txbytes", "txerrs", "txretries", "rx", "rxbytes", "rxerrs", "req_timeouts", "connects")
_CLIENT_TOTALS = ("tx", "tx_bytes", "rx", "rx_bytes", "txmsgs", "txmsg_bytes", "rxmsgs", "rxmsg_bytes", "msg_cnt")
_TOPIC_WINDOWS = ("batchsize", "batchcnt")


class Metrics:
    """Collects the figures that librdkafka reports from time to time; give `settings` to the client."""

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._latest: dict[str, Any] = {}
        self._reports = 0
        self.settings: dict[str, Any] = {"statistics.interval.ms": INTERVAL_MS, "stats_cb": self._receive}

    def _receive(self, document: str) -> None:
        self._latest = json.loads(document)
        self._reports += 1

    def wait_for_last(self, poll: Callable[[float], object]) -> None:
        """Figures come at intervals: wait for those that count everything."""
        seen, deadline = self._reports, time.monotonic() + LAST_FIGURES_WAIT_S
        while self._reports == seen and time.monotonic() < deadline:
            poll(0.1)

    def lines(self) -> list[str]:
        rows = sorted(self._rows().items())
        width = max((len(name) for name, _ in rows), default=0)
        return ["", f"{'Metric Name':<{width}}   Value", *(f"{name:<{width}} : {value:.3f}" for name, value in rows)]

    def _rows(self) -> dict[str, float]:
        stats, kind = self._latest, self._kind
        client = f"client-id={stats.get('client_id', '')}"
        rows = {f"{kind}-metrics:{name}:{{{client}}}": float(stats.get(name, 0)) for name in _CLIENT_TOTALS}
        for broker in stats.get("brokers", {}).values():
            if broker.get("nodeid", -1) < 0:
                continue  # a bootstrap address or the coordinator's own connection, counted elsewhere
            tags = f"{{{client}, node-id=node-{broker['nodeid']}}}"
            for name in _NODE_TOTALS:
                rows[f"{kind}-node-metrics:{name}:{tags}"] = float(broker.get(name, 0))
            for name in _NODE_WINDOWS:
                rows |= self._window(broker.get(name, {}), f"{kind}-node-metrics:{name}", tags)
        for topic, figures in stats.get("topics", {}).items():
            for name in _TOPIC_WINDOWS:
                tags = f"{{{client}, topic={topic}}}"
                rows |= self._window(figures.get(name, {}), f"{kind}-topic-metrics:{name}", tags)
        return rows

    @staticmethod
    def _window(figures: dict[str, float], name: str, tags: str) -> dict[str, float]:
        return {f"{name}-{part}:{tags}": float(figures[part]) for part in ("avg", "max", "p99") if part in figures}
