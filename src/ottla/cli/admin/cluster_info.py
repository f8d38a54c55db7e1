"""`kafka-cluster`: a cluster's id, where its brokers listen, and how one is taken out for good."""

import argparse
from collections.abc import Awaitable, Callable, Mapping, Sequence

from ottla.cli.common.admin_session import run_admin
from ottla.cli.common.options import CommandParser, ToolParser, add_connection_options
from ottla.cli.common.output import CommandError, print_columns, print_json
from ottla.client.cluster import Cluster, raise_for
from ottla.client.errors import UnsupportedByBroker
from ottla.protocol.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from ottla.protocol.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse

EXAMPLES = """
  %(prog)s cluster-id --bootstrap-server localhost:9092
  %(prog)s list-endpoints --bootstrap-server localhost:9092
  %(prog)s unregister --bootstrap-server localhost:9092 --id 3

A whole cluster on this machine is started by `ottla cluster`.
"""
NOT_FENCED_BEFORE = 2  # of DescribeCluster: the version that can tell of fenced brokers


def main(argv: Sequence[str] | None = None, prog: str = "ottla cluster-info") -> int:
    args = _parser(prog).parse(argv)
    work: Mapping[str, Callable[[Cluster, argparse.Namespace], Awaitable[int]]] = {
        "cluster-id": _cluster_id,
        "list-endpoints": _list_endpoints,
        "unregister": _unregister,
    }
    return run_admin(args, lambda cluster: work[args.command](cluster, args))


def _parser(prog: str) -> ToolParser:
    parser = ToolParser(prog, "Show a cluster's id and where its brokers listen.", EXAMPLES)
    parser.usage = "%(prog)s [options] COMMAND [options of the command]"
    add_connection_options(parser)
    commands = parser.add_subparsers(
        dest="command", metavar="COMMAND", required=True, title="commands", parser_class=CommandParser
    )
    identifying = commands.add_parser("cluster-id", help="show the id of the cluster")
    listing = commands.add_parser("list-endpoints", help="show where the brokers listen")
    listing.add_argument("--include-fenced-brokers", action="store_true", help="those that may not serve yet, too")
    leaving = commands.add_parser("unregister", help="forget a broker that will not come back")
    leaving.add_argument("--id", "-i", type=int, required=True, metavar="ID", dest="broker_id", help="which one")
    for command in (identifying, listing, leaving):
        command.add_argument("-b", dest="bootstrap_server", default=argparse.SUPPRESS, help=argparse.SUPPRESS)
        command.add_argument("--config", "-c", dest="command_config", default=argparse.SUPPRESS, metavar="FILE",
                             help="older name of --command-config")  # fmt: skip
    return parser


async def _describe(cluster: Cluster, *, fenced: bool) -> DescribeClusterResponse:
    request = DescribeClusterRequest(include_fenced_brokers=fenced)
    answer = await cluster.call(request, DescribeClusterResponse, min_version=NOT_FENCED_BEFORE if fenced else 0)
    raise_for(answer.error_code, answer.error_message)
    return answer


async def _cluster_id(cluster: Cluster, args: argparse.Namespace) -> int:
    answer = await _describe(cluster, fenced=False)
    if args.json:
        print_json({"cluster_id": answer.cluster_id})
    else:
        print(f"Cluster ID: {answer.cluster_id}")
    return 0


async def _list_endpoints(cluster: Cluster, args: argparse.Namespace) -> int:
    fenced = args.include_fenced_brokers
    brokers = sorted((await _describe(cluster, fenced=fenced)).brokers, key=lambda broker: broker.broker_id)
    if args.json:
        print_json(
            [
                {"id": broker.broker_id, "host": broker.host, "port": broker.port, "rack": broker.rack}
                | ({"fenced": broker.is_fenced} if fenced else {})
                for broker in brokers
            ]
        )
        return 0
    rows: list[tuple[object, ...]] = [("ID", "HOST", "PORT", "RACK", *(["STATE"] if fenced else []), "ENDPOINT_TYPE")]
    for broker in brokers:
        state = ["fenced" if broker.is_fenced else "unfenced"] if fenced else []
        rows.append((broker.broker_id, broker.host, broker.port, broker.rack or "null", *state, "broker"))
    print_columns(rows, gap=3)
    return 0


async def _unregister(cluster: Cluster, args: argparse.Namespace) -> int:
    try:
        answer = await cluster.call(UnregisterBrokerRequest(broker_id=args.broker_id), UnregisterBrokerResponse)
    except UnsupportedByBroker:
        raise CommandError(
            "the target cluster does not support the broker unregistration API. A broker of Ottla is forgotten as soon "
            "as it has stopped; move its partitions to others with reassign-partitions, before or after"
        ) from None
    raise_for(answer.error_code, answer.error_message)
    print(f"Broker {args.broker_id} is no longer registered.")
    return 0
