"""`kafka-json-schema-console-consumer`: records with JSON Schema schemas, printed as JSON."""

import sys
from collections.abc import Sequence

from ottla.cli.data.schema_consoles import consume


def main(argv: Sequence[str] | None = None, prog: str = "ottla json-schema-console-consumer") -> int:
    return consume(sys.argv[1:] if argv is None else argv, prog)
