"""`kafka-features`: the versions of protocols that the brokers of a cluster have agreed on."""

import argparse
from collections.abc import Awaitable, Callable, Mapping, Sequence

from ottla import __version__
from ottla.cli.common.admin_session import run_admin
from ottla.cli.common.options import CommandParser, ToolParser, add_connection_options
from ottla.cli.common.output import CommandError, print_json
from ottla.client.cluster import Cluster, raise_for
from ottla.client.errors import UnsupportedByBroker
from ottla.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from ottla.protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest, UpdateFeaturesResponse

EXAMPLES = """
  %(prog)s --bootstrap-server localhost:9092 describe
  %(prog)s --bootstrap-server localhost:9092 upgrade --feature group.version=1

Brokers of Ottla serve the highest levels that they know as soon as they run: there is nothing to upgrade in them. The
commands that change levels are for clusters of Apache Kafka.
"""
FEATURES_SINCE = 3  # of ApiVersions
UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE = 1, 2, 3
LEVEL_MAX = 2**15 - 1


def main(argv: Sequence[str] | None = None, prog: str = "ottla features") -> int:
    args = _parser(prog).parse(argv)
    work: Mapping[str, Callable[[Cluster, argparse.Namespace], Awaitable[int]]] = {
        "describe": _describe,
        "upgrade": _change,
        "downgrade": _change,
        "disable": _change,
    }
    return run_admin(args, lambda cluster: work[args.command](cluster, args))


def _parser(prog: str) -> ToolParser:
    parser = ToolParser(prog, "Show and change the feature levels of a cluster.", EXAMPLES)
    parser.usage = "%(prog)s [options] COMMAND [options of the command]"
    add_connection_options(parser)
    commands = parser.add_subparsers(
        dest="command", metavar="COMMAND", required=True, title="commands", parser_class=CommandParser
    )
    describing = commands.add_parser("describe", help="show the levels that are known and in force")
    describing.add_argument("--node-id", type=int, metavar="ID", help="as this broker knows them")
    for name, wanted in (("upgrade", "FEATURE=LEVEL"), ("downgrade", "FEATURE=LEVEL"), ("disable", "FEATURE")):
        changing = commands.add_parser(name, help=f"{name} features")
        changing.add_argument("--feature", action="append", default=[], metavar=wanted, help="may be repeated")
        changing.add_argument("--dry-run", action="store_true", help="ask whether it could be done, and do nothing")
        changing.add_argument("--unsafe", action="store_true", help="even if that loses metadata")
    return parser


async def _describe(cluster: Cluster, args: argparse.Namespace) -> int:
    request = ApiVersionsRequest(client_software_name="ottla", client_software_version=__version__)
    answer = await cluster.call(request, ApiVersionsResponse, node=args.node_id, min_version=FEATURES_SINCE)
    raise_for(answer.error_code)
    epoch = answer.finalized_features_epoch
    in_force = {feature.name: feature.max_version_level for feature in answer.finalized_features}
    rows = [
        {
            "feature": feature.name,
            "supported_min_version": feature.min_version,
            "supported_max_version": feature.max_version,
            "finalized_version_level": in_force.get(feature.name, 0),
        }
        for feature in sorted(answer.supported_features, key=lambda feature: feature.name)
    ]
    if args.json:
        print_json({"epoch": epoch, "features": rows})
        return 0
    for row in rows:
        print(
            f"Feature: {row['feature']}\tSupportedMinVersion: {row['supported_min_version']}\tSupportedMaxVersion: "
            f"{row['supported_max_version']}\tFinalizedVersionLevel: {row['finalized_version_level']}\t"
            f"Epoch: {epoch if epoch >= 0 else '-'}"
        )
    return 0


async def _change(cluster: Cluster, args: argparse.Namespace) -> int:
    wanted = dict(_level(text, disable=args.command == "disable") for text in args.feature)
    if len(wanted) != len(args.feature):
        raise CommandError("a feature was specified more than once")
    if not wanted:
        raise CommandError(f"say what to {args.command} with --feature; `describe` lists the features")
    kind = UPGRADE if args.command == "upgrade" else UNSAFE_DOWNGRADE if args.unsafe else SAFE_DOWNGRADE
    request = UpdateFeaturesRequest(
        feature_updates=[
            FeatureUpdateKey(feature=name, max_version_level=level, upgrade_type=kind) for name, level in wanted.items()
        ],
        validate_only=args.dry_run,
    )
    try:
        answer = await cluster.call(request, UpdateFeaturesResponse, node=await cluster.controller(), min_version=1)
    except UnsupportedByBroker:
        raise CommandError(
            "the cluster does not change feature levels: brokers of Ottla serve the highest that they know, which "
            "`describe` shows, and other levels come with another version of the program"
        ) from None
    raise_for(answer.error_code, answer.error_message)
    for result in answer.results:
        raise_for(result.error_code, f"{result.feature}: {result.error_message or ''}")
    done = "can be" if args.dry_run else "was"
    for name, level in wanted.items():
        print(f"{name} {done} " + ("disabled." if args.command == "disable" else f"{args.command}d to {level}."))
    return 0


def _level(text: str, *, disable: bool) -> tuple[str, int]:
    if disable:
        return text, 0
    name, equals, level = text.partition("=")
    if not equals or not level.strip().isdecimal() or int(level) > LEVEL_MAX:
        raise CommandError(f"--feature wants FEATURE=LEVEL with a number, not `{text}`")
    return name.strip(), int(level)
