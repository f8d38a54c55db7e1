"""`kafka-broker-api-versions`: which requests, in which versions, each broker serves."""

import argparse
from collections.abc import Mapping, Sequence

from ottla.cli.common.admin_session import run_admin
from ottla.cli.common.options import ToolParser, add_connection_options
from ottla.cli.common.output import complain, print_json
from ottla.client.cluster import Broker, Cluster
from ottla.client.errors import ClientError
from ottla.protocol.apis import API, OWN, ApiKey
from ottla.protocol.messages.api_versions import ApiVersion

# Spoken between brokers and controllers only: their absence tells a client nothing.
INTERNAL = frozenset(
    {
        ApiKey.VOTE,
        ApiKey.BEGIN_QUORUM_EPOCH,
        ApiKey.END_QUORUM_EPOCH,
        ApiKey.ALTER_PARTITION,
        ApiKey.ENVELOPE,
        ApiKey.FETCH_SNAPSHOT,
        ApiKey.BROKER_REGISTRATION,
        ApiKey.BROKER_HEARTBEAT,
        ApiKey.ALLOCATE_PRODUCER_IDS,
        ApiKey.CONTROLLER_REGISTRATION,
        ApiKey.ASSIGN_REPLICAS_TO_DIRS,
        ApiKey.UPDATE_RAFT_VOTER,
        *OWN,
    }
)

EXAMPLES = """
  %(prog)s --bootstrap-server localhost:9092
  %(prog)s --json
"""


def main(argv: Sequence[str] | None = None, prog: str = "ottla broker-api-versions") -> int:
    parser = ToolParser(
        prog, "Show which requests, in which versions, each broker serves.", EXAMPLES, help_without_arguments=False
    )
    add_connection_options(parser)
    args = parser.parse(argv)
    return run_admin(args, lambda cluster: _show(cluster, args))


async def _show(cluster: Cluster, args: argparse.Namespace) -> int:
    await cluster.metadata([])
    documents: list[dict[str, object]] = []
    failed = False
    for broker in [cluster.brokers[node] for node in sorted(cluster.brokers)]:
        try:
            versions = (await cluster.connection(broker.node_id)).versions
        except ClientError as error:
            complain(f"broker {broker.node_id}: {error}")
            failed = True
            continue
        if args.json:
            documents.append(_document(broker, versions))
        else:
            print(f"{_name(broker)} -> (\n\t" + ",\n\t".join(_lines(versions)) + "\n)")
    if args.json:
        print_json(documents)
    return 1 if failed else 0


def _name(broker: Broker) -> str:
    return f"{broker.address} (id: {broker.node_id} rack: {broker.rack or 'null'} isFenced: false)"


def _lines(versions: Mapping[int, ApiVersion]) -> list[str]:
    """One line for each request that the broker serves or that we know."""
    lines: list[str] = []
    for key in sorted({*versions, *(key for key in API if key not in INTERNAL)}):
        spec, served = API.get(key), versions.get(key)
        title = f"{spec.name if spec else 'UNKNOWN'}({key})"
        if served is None:
            lines.append(f"{title}: UNSUPPORTED")
            continue
        lowest, highest = served.min_version, served.max_version
        text = f"{title}: {lowest}" if lowest == highest else f"{title}: {lowest} to {highest}"
        if spec:
            usable = min(spec.max_version, highest)
            if usable < max(spec.min_version, lowest):
                side = "new" if spec.max_version < lowest else "old"
                text += f" [unusable: node too {side}]"
            else:
                text += f" [usable: {usable}]"
        lines.append(text)
    return lines


def _document(broker: Broker, versions: Mapping[int, ApiVersion]) -> dict[str, object]:
    return {
        "broker": broker.node_id,
        "address": str(broker.address),
        "rack": broker.rack,
        "apis": [
            {
                "key": key,
                "name": API[key].name if key in API else None,
                "min": served.min_version,
                "max": served.max_version,
            }
            for key, served in sorted(versions.items())
        ],
    }
