"""`kafka-protobuf-console-producer`: lines of JSON, written with a Protobuf schema."""

import sys
from collections.abc import Sequence

from ottla.cli.data.schema_consoles import produce


def main(argv: Sequence[str] | None = None, prog: str = "ottla protobuf-console-producer") -> int:
    return produce(sys.argv[1:] if argv is None else argv, prog, "ProtobufReader")
