"""Lines of JSON that report what happened, as Kafka's verifiable tools print them: timestamp, name, then the rest."""

import json
import sys
import time


def emit(name: str, **fields: object) -> None:
    event = {"timestamp": time.time_ns() // 1_000_000, "name": name, **fields}
    # One write for the line and its end, at once: whoever reads the pipe never sees half an event.
    sys.stdout.write(json.dumps(event, separators=(",", ":"), ensure_ascii=False) + "\n")
    sys.stdout.flush()
