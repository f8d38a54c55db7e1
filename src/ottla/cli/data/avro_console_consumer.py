"""`kafka-avro-console-consumer`: records with Avro schemas, printed as JSON."""

import sys
from collections.abc import Sequence

from ottla.cli.data.schema_consoles import consume


def main(argv: Sequence[str] | None = None, prog: str = "ottla avro-console-consumer") -> int:
    return consume(sys.argv[1:] if argv is None else argv, prog)
