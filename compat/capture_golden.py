"""Record bytes of a real Apache Kafka into tests/golden: python -m compat.capture_golden.

Messages go into one JSON file for each API, log files into tests/golden/segments. Run it again when the peer's
version changes; the tests then say what changed.
"""

import base64
import json
import shutil
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from compat.golden.clients import CLIENTS
from compat.golden.proxy import Exchange, RecordingProxy
from compat.golden.segments import copy_segments, expected_records, write_segments
from compat.golden.sweep import sweep
from compat.peer.kafka import Kafka, free_port

from ottla.protocol.apis import API

ROOT = Path(__file__).resolve().parents[1]
TARGET = ROOT / "tests" / "golden"
KEEP_BYTES_MAX = 6000
KEEP_FROM_CLIENT = 1


def main() -> None:
    """Run a Kafka behind the recorder, drive it, and write down what passed."""
    folder = Path(tempfile.mkdtemp(prefix="ottla-golden-"))
    port = free_port()
    proxy = RecordingProxy(port)
    listener = f"127.0.0.1:{proxy.port}"
    settings = {
        "advertised.listeners": f"PLAINTEXT://{listener}",
        "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{free_port()}",
        "offsets.topic.num.partitions": "5",
        "group.initial.rebalance.delay.ms": "0",
    }
    node = Kafka(folder, settings=settings, port=port)
    try:
        node.start()
        proxy.source = "sweep"
        sweep(proxy.port)
        for name, drive in CLIENTS.items():
            sys.stdout.write(f"{name}\n")
            proxy.source = name
            drive(listener)
        proxy.source = ""
        write_segments(node)
        records = expected_records(node.bootstrap)
        node.stop()
        copy_segments(node, records, TARGET / "segments")
        _write_messages(proxy.exchanges)
    finally:
        node.stop()
        proxy.close()
        shutil.rmtree(folder)


def _kept(exchanges: list[Exchange]) -> Iterator[Exchange]:
    """Everything of the sweep, the first of each kind from each client, nothing large."""
    taken: dict[tuple[str, int, int], int] = defaultdict(int)
    for exchange in exchanges:
        kind = exchange.source, exchange.api_key, exchange.version
        if not exchange.source or len(exchange.request) + len(exchange.response) > KEEP_BYTES_MAX:
            continue
        if exchange.source == "sweep" or taken[kind] < KEEP_FROM_CLIENT:
            taken[kind] += 1
            yield exchange


def _write_messages(exchanges: list[Exchange]) -> None:
    by_api: dict[int, list[Exchange]] = defaultdict(list)
    for exchange in _kept(exchanges):
        by_api[exchange.api_key].append(exchange)
    for path in TARGET.glob("*.json"):
        path.unlink()
    for api_key, kept in by_api.items():
        entries = [
            {
                "source": each.source, "version": each.version, "request": base64.b64encode(each.request).decode(),
                "response": base64.b64encode(each.response).decode(),
            }
            for each in sorted(dict.fromkeys(kept), key=lambda each: (each.version, each.source != "sweep"))
        ]  # fmt: skip
        path = TARGET / f"{API[api_key].key.name.lower()}.json"
        path.write_text("[\n" + ",\n".join(json.dumps(entry) for entry in entries) + "\n]\n")


if __name__ == "__main__":
    main()
