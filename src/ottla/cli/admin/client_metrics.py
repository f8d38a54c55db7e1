"""`kafka-client-metrics`: which clients push which of their metrics, and how often (KIP-714)."""

import argparse
import uuid
from collections.abc import Sequence

from ottla.cli.common.admin_session import run_admin
from ottla.cli.common.options import ToolParser, add_connection_options
from ottla.cli.common.output import print_json
from ottla.client import admin
from ottla.client.admin import Resource, ResourceType
from ottla.client.cluster import Cluster
from ottla.client.config_resources import list_config_resources
from ottla.model.names import format_topic_id

EXAMPLES = """
  %(prog)s --alter --name everything --metrics '*' --interval 60000
  %(prog)s --alter --generate-name --metrics org.apache.kafka.producer. --match client_id=billing-.*
  %(prog)s --describe
  %(prog)s --delete --name everything

What clients push is on every broker's metrics.listener, under names that begin with ottla_client_.
"""


def main(argv: Sequence[str] | None = None, prog: str = "ottla client-metrics") -> int:
    parser = ToolParser(prog, "Say which clients push which of their metrics.", EXAMPLES)
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument("--alter", action="store_true", help="create a subscription, or change one")
    action.add_argument("--delete", action="store_true", help="remove a subscription")
    action.add_argument("--describe", action="store_true", help="show one subscription, or all")
    action.add_argument("--list", action="store_true", help="list the names of subscriptions")
    parser.add_argument("--name", help="of a subscription")
    parser.add_argument("--generate-name", action="store_true", help="give the subscription a name that is nobody's")
    parser.add_argument(
        "--metrics", help="prefixes of names of metrics, with commas between; '*' for all; empty to forget what was set"
    )
    parser.add_argument("--interval", help="how often to push, in milliseconds; empty for the default of 300000")
    parser.add_argument(
        "--match",
        help="which clients: client_id=REGEX,client_software_name=REGEX, ...; empty for all of them",
    )
    add_connection_options(parser)
    args = parser.parse(argv)
    if args.alter and bool(args.name) == args.generate_name:
        parser.error("--alter wants either --name NAME or --generate-name")
    if args.delete and not args.name:
        parser.error("--delete wants --name NAME")
    if not args.alter and (args.generate_name or args.metrics or args.interval or args.match):
        parser.error("--generate-name, --metrics, --interval and --match go with --alter")
    return run_admin(args, lambda cluster: _run(cluster, args))


async def _run(cluster: Cluster, args: argparse.Namespace) -> int:
    if args.list:
        names = await list_config_resources(cluster, ResourceType.CLIENT_METRICS)
        print_json(names) if args.json else print("\n".join(names))
        return 0
    if args.describe:
        return await _describe(cluster, args)
    if args.delete:
        known = await _configs(cluster, args.name)
        await admin.alter_configs(cluster, _resource(args.name), delete=list(known))
        return _said(args, args.name, "Deleted client metrics config for")
    name = args.name or format_topic_id(uuid.uuid4())
    given = {"metrics": args.metrics, "interval.ms": args.interval, "match": args.match}
    added = {key: value for key, value in given.items() if value}
    deleted = [key for key, value in given.items() if value is not None and not value]
    await admin.alter_configs(cluster, _resource(name), add=added, delete=deleted)
    return _said(args, name, "Altered client metrics config for")


def _said(args: argparse.Namespace, name: str, text: str) -> int:
    if args.json:
        print_json({"name": name})
    else:
        print(f"{text} {name}.")
    return 0


async def _describe(cluster: Cluster, args: argparse.Namespace) -> int:
    names = [args.name] if args.name else await list_config_resources(cluster, ResourceType.CLIENT_METRICS)
    found = {name: await _configs(cluster, name) for name in names}
    if args.json:
        print_json([{"name": name, "configs": configs} for name, configs in found.items()])
        return 0
    for name, configs in found.items():
        print(f"Client metrics configs for {name} are:")
        for key, value in configs.items():
            print(f"  {key}={value}")
    return 0


async def _configs(cluster: Cluster, name: str) -> dict[str, str]:
    found = await admin.describe_configs(cluster, [_resource(name)])
    return {setting.name: setting.value or "" for setting in found[_resource(name)]}


def _resource(name: str) -> Resource:
    return Resource(ResourceType.CLIENT_METRICS, name)
