"""Write docs/apis.md from the table of served APIs and the header of each handler's file."""

import importlib
import sys
from pathlib import Path

from ottla.broker.handlers.table import SERVED, advertised
from ottla.protocol.apis import API

TARGET = Path(__file__).parent.parent / "docs/apis.md"

HEAD = """# APIs

What this broker serves, in the version ranges that Apache Kafka 4.3 advertises. ApiVersions tells clients exactly this
list; only the last, which is Ottla's own, it tells to no client but Ottla's. Written by `make docs` from
`src/ottla/broker/handlers/`; a test fails when it is not current.

| key | API | versions | what it does, and what is missing |
|---|---|---|---|
"""


def render() -> str:
    offered = {api.key: api for api in advertised()}
    rows = []
    for key in sorted(SERVED):
        module = importlib.import_module(f"ottla.broker.handlers.{key.name.lower()}")
        assert module.__doc__, f"{module.__name__} has no header"
        _, _, behaviour = module.__doc__.strip().partition("\n\n")
        words = " ".join(behaviour.split()).replace("|", "\\|")
        versions = f"{offered[key].min_version}-{offered[key].max_version}"
        rows.append(f"| {key:d} | {API[key].name} | {versions} | {words} |\n")
    return HEAD + "".join(rows)


def main() -> int:
    TARGET.write_text(render())
    print(f"{len(SERVED)} APIs written to docs/{TARGET.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
