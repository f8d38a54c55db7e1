"""`ottla backup metadata`: what the metadata store holds, to a file with a checksum and back into an empty store."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ottla.cli.common.options import ToolParser
from ottla.cli.common.output import CommandError, print_json
from ottla.cli.pipeline.options import add_json

if TYPE_CHECKING:
    from ottla.config.zookeeper import Ensemble

EXAMPLES = """
  %(prog)s metadata.jsonl --zookeeper localhost:2181/kafka            while the brokers run
  %(prog)s metadata.jsonl --data .ottla                               of a broker on its own that is stopped
  %(prog)s metadata.jsonl --restore --zookeeper localhost:2181/new    into a path where nothing is
"""
NOTES = """
The file has topics, partitions, settings, ACLs, quotas, tokens and SCRAM users with their salted passwords: keep it as
you would keep those. It does not have records; `ottla backup run` takes them.
"""


def main(argv: Sequence[str] | None = None, prog: str = "ottla backup metadata") -> int:
    parser = ToolParser(prog, "Copy a cluster's metadata store to a file, or back.", EXAMPLES, notes=NOTES)
    parser.add_argument("file", type=Path, metavar="FILE", help="the copy")
    parser.add_argument("--zookeeper", metavar="HOST:PORT/CHROOT", help="the store of a cluster")
    parser.add_argument("--data", type=Path, metavar="DIR", help="the first log directory of a broker on its own")
    parser.add_argument("--restore", action="store_true", help="from the file into the store, which must be empty")
    add_json(parser)
    args = parser.parse(argv)
    if (args.zookeeper is None) == (args.data is None):
        raise CommandError("name one store: --zookeeper HOST:PORT/CHROOT, or --data DIR")
    ensemble = None if args.zookeeper is None else _ensemble(args.zookeeper)
    documents = _restore(args.file, ensemble, args.data) if args.restore else _copy(args.file, ensemble, args.data)
    from ottla.cluster.metadata_file import cluster_of

    if args.json:
        print_json({"file": str(args.file), "cluster_id": cluster_of(documents), "documents": len(documents)})
        return 0
    done = "restored from" if args.restore else "written to"
    print(f"cluster {cluster_of(documents)}: {len(documents)} documents {done} {args.file}")
    return 0


def _ensemble(text: str) -> "Ensemble":
    from ottla.config.zookeeper import parse_connect

    try:
        return parse_connect(text)
    except ValueError as error:
        raise CommandError(f"{error}; give host:port,host:port/path") from None


def _copy(file: Path, ensemble: "Ensemble | None", data: Path | None) -> dict[str, bytes]:
    from ottla.cluster.metadata_copy import copy_embedded, copy_zookeeper
    from ottla.cluster.metadata_file import encode_metadata
    from ottla.pipelines.connectors.durable_files import replace_file

    if file.exists():
        raise CommandError(f"{file} exists: choose another name, so that no copy is lost")
    if ensemble is not None:
        documents = copy_zookeeper(ensemble)
    else:
        assert data is not None, "one of both is named"
        documents = copy_embedded(data)
    file.parent.mkdir(parents=True, exist_ok=True)
    replace_file(file, encode_metadata(documents))
    file.chmod(0o600)
    return documents


def _restore(file: Path, ensemble: "Ensemble | None", data: Path | None) -> dict[str, bytes]:
    from ottla.cluster.metadata_copy import restore_embedded, restore_zookeeper
    from ottla.cluster.metadata_file import decode_metadata

    try:
        content = file.read_bytes()
    except OSError as error:
        raise CommandError(f"cannot read {file}: {error.strerror}") from None
    documents = decode_metadata(content, str(file))
    if ensemble is not None:
        asyncio.run(restore_zookeeper(ensemble, documents))
    elif data is not None:
        restore_embedded(data, documents)
    return documents
