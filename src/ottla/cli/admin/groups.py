"""`kafka-groups`: list groups of every type."""

import argparse
from collections.abc import Sequence

from ottla.cli.admin.consumer_group_scope import CONSUMER_PROTOCOL_TYPES
from ottla.cli.common.admin_session import run_admin
from ottla.cli.common.options import ToolParser, add_connection_options
from ottla.cli.common.output import CommandError, print_columns, print_json
from ottla.client import groups
from ottla.client.cluster import Cluster
from ottla.protocol.messages.list_groups import ListedGroup

TYPES = ("classic", "consumer", "share", "streams")
COLUMN_WIDTH = 20

EXAMPLES = """
  %(prog)s --list
  %(prog)s --list --group-type consumer
  %(prog)s --list --consumer
  %(prog)s --list --protocol connect
"""


def main(argv: Sequence[str] | None = None, prog: str = "ottla groups") -> int:
    parser = ToolParser(prog, "List the groups of all brokers, whatever their type.", EXAMPLES)
    parser.add_argument("--list", action="store_true", help="print groups with their types and protocols")
    chosen = parser.add_argument_group("which groups (all without one of these)")
    chosen.add_argument("--group-type", metavar="TYPE", help=f"those of one type: {', '.join(TYPES)}")
    chosen.add_argument("--protocol", metavar="PROTOCOL", help="those whose members speak this protocol")
    chosen.add_argument("--consumer", action="store_true", help="groups of consumers, of either protocol")
    chosen.add_argument("--share", action="store_true", help="share groups")
    chosen.add_argument("--streams", action="store_true", help="groups of Kafka Streams")
    add_connection_options(parser)
    args = parser.parse(argv)
    if not args.list:
        parser.error("there is one action: --list")
    short = [name for name in ("consumer", "share", "streams") if getattr(args, name)]
    if len(short) > 1 or (short and (args.group_type or args.protocol)):
        parser.error("--consumer, --share and --streams go with nothing else")
    return run_admin(args, lambda cluster: _list(cluster, args))


async def _list(cluster: Cluster, args: argparse.Namespace) -> int:
    wanted_type = (args.group_type or "").lower()
    if wanted_type and wanted_type not in TYPES:
        raise CommandError(f"--group-type: `{args.group_type}` is not one of {', '.join(TYPES)}")
    shown = [group for group in await groups.list_groups(cluster) if _is_wanted(group, wanted_type, args)]
    if args.json:
        print_json(
            [
                {"group": group.group_id, "type": group.group_type.capitalize(), "protocol": group.protocol_type}
                for group in shown
            ]
        )
        return 0
    rows = [(group.group_id, group.group_type.capitalize(), group.protocol_type) for group in shown]
    print_columns([("GROUP", "TYPE", "PROTOCOL"), *rows], minimum=[COLUMN_WIDTH] * 3)
    return 0


def _is_wanted(group: ListedGroup, wanted_type: str, args: argparse.Namespace) -> bool:
    kind = group.group_type.lower()
    if args.consumer:
        return kind == "consumer" or (kind == "classic" and group.protocol_type in CONSUMER_PROTOCOL_TYPES)
    if args.share or args.streams:
        return kind == ("share" if args.share else "streams")
    return (not wanted_type or kind == wanted_type) and args.protocol in (None, group.protocol_type)
