"""`kafka-configs`: describe and alter settings of topics, brokers and groups, and quotas, while they run."""

import argparse
import re
from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import NamedTuple

from ottla.cli.admin import client_quotas, scram_configs
from ottla.cli.common.admin_session import run_admin
from ottla.cli.common.options import ToolParser, add_connection_options, read_properties
from ottla.cli.common.output import CommandError, note, print_json
from ottla.client import admin
from ottla.client.admin import ConfigSource, Resource, ResourceType
from ottla.client.cluster import Cluster
from ottla.client.config_resources import list_config_resources
from ottla.model.error_words import in_words
from ottla.model.errors import ApiError
from ottla.model.names import check_topic_name
from ottla.protocol.messages.describe_configs import DescribeConfigsResourceResult

DEFAULTS = ""


class EntityKind(NamedTuple):
    """A kind of thing that has settings: how it is asked for, and which source means 'set for this very thing'."""

    resource_type: ResourceType
    own_source: ConfigSource


KINDS: Mapping[str, EntityKind] = {
    "topics": EntityKind(ResourceType.TOPIC, ConfigSource.DYNAMIC_TOPIC_CONFIG),
    "brokers": EntityKind(ResourceType.BROKER, ConfigSource.DYNAMIC_BROKER_CONFIG),
    "groups": EntityKind(ResourceType.GROUP, ConfigSource.DYNAMIC_GROUP_CONFIG),
    "broker-loggers": EntityKind(ResourceType.BROKER_LOGGER, ConfigSource.DYNAMIC_BROKER_LOGGER_CONFIG),
    "client-metrics": EntityKind(ResourceType.CLIENT_METRICS, ConfigSource.DYNAMIC_CLIENT_METRICS_CONFIG),
}

SERVED = (*KINDS, *client_quotas.TYPES)

# Shortcuts: --topic NAME is --entity-type topics --entity-name NAME.
SHORTCUTS: Mapping[str, str] = {
    "topic": "topics",
    "broker": "brokers",
    "group": "groups",
    "user": "users",
    "client": "clients",
    "ip": "ips",
    "broker_logger": "broker-loggers",
    "client_metrics": "client-metrics",
}
DEFAULT_SHORTCUTS: Mapping[str, str] = {
    "broker_defaults": "brokers",
    "user_defaults": "users",
    "client_defaults": "clients",
    "ip_defaults": "ips",
}

EXAMPLES = """
  %(prog)s --describe --topic news --all
  %(prog)s --alter --topic news --add-config retention.ms=86400000,cleanup.policy=[compact,delete]
  %(prog)s --alter --topic news --delete-config retention.ms
  %(prog)s --describe --entity-type brokers --entity-name 1
  %(prog)s --alter --broker-defaults --add-config log.retention.ms=3600000
  %(prog)s --alter --user alice --client app --add-config producer_byte_rate=1048576
  %(prog)s --alter --client-defaults --add-config consumer_byte_rate=2097152,request_percentage=50
  %(prog)s --describe --entity-type users --entity-type clients
  %(prog)s --alter --ip 192.0.2.7 --add-config connection_creation_rate=10
  %(prog)s --alter --user alice --add-config 'SCRAM-SHA-512=[iterations=8192,password=...]'   (better: ottla users)
"""


class Entity(NamedTuple):
    kind: str
    name: str | None
    """None: all of this kind. Empty: the defaults."""

    @property
    def one(self) -> str:
        return self.kind.removesuffix("s")


def main(argv: Sequence[str] | None = None, prog: str = "ottla configs") -> int:
    parser = _parser(prog)
    args = parser.parse(argv)
    if args.alter == args.describe:
        parser.error("give exactly one action: --describe or --alter")
    if args.force:
        note("--force has nothing to suppress: this tool never asks questions")
    wanted = _wanted(args)
    entity = wanted[0]
    _check(parser, args, entity)
    if entity.kind in client_quotas.TYPES:
        added, deleted = _added(args), _deleted(args)
        if scram_configs.is_meant(added, deleted):
            return scram_configs.run(args, wanted, added, deleted)
        return client_quotas.run(parser, args, wanted, added)
    work = _describe if args.describe else _alter
    try:
        return run_admin(args, lambda cluster: work(cluster, entity, args))
    except ApiError as error:
        whose = f"{entity.one} {entity.name}" if entity.name else entity.kind
        raise CommandError(f"{whose}: {in_words(error)}") from error


def _deleted(args: argparse.Namespace) -> list[str]:
    return [key.strip() for keys in args.delete_config or [] for key in keys.split(",") if key.strip()]


def _check(parser: ToolParser, args: argparse.Namespace, entity: Entity) -> None:
    changes = args.add_config or args.add_config_file or args.delete_config
    if args.describe:
        if changes:
            parser.error("--add-config, --add-config-file and --delete-config go with --alter")
        return
    if args.all:
        parser.error("--all goes with --describe")
    if entity.name is None:
        parser.error(
            "--alter needs to know of whom: give --entity-name, --entity-default, or a form such as --topic NAME"
        )
    if args.add_config and args.add_config_file:
        parser.error("give --add-config or --add-config-file, not both")
    if not changes:
        parser.error("--alter needs --add-config, --add-config-file or --delete-config")


def _parser(prog: str) -> ToolParser:
    parser = ToolParser(
        prog,
        "Describe and alter settings of topics, brokers and groups, and quotas of clients, while they run.",
        EXAMPLES,
    )
    parser.add_argument("--describe", action="store_true", help="show settings")
    parser.add_argument("--alter", action="store_true", help="change settings")
    parser.add_argument("--all", action="store_true", help="with --describe: defaults and static settings as well")
    changes = parser.add_argument_group("with --alter")
    changes.add_argument("--add-config", metavar="K=V,K=[V,V]", help="settings to set; brackets hold a list together")
    changes.add_argument("--add-config-file", metavar="FILE", help="properties file with settings to set")
    changes.add_argument("--delete-config", action="append", metavar="K,K", help="settings to return to their defaults")
    whose = parser.add_argument_group("whose settings")
    kinds = ", ".join(SERVED)
    whose.add_argument("--entity-type", action="append", metavar="TYPE", help=f"one of {kinds}; or users and clients")
    whose.add_argument("--entity-name", action="append", metavar="NAME", help="who, by name or number")
    whose.add_argument(
        "--entity-default", dest="entity_name", action="append_const", const=DEFAULTS, help="the defaults of a kind"
    )
    for option, kind in SHORTCUTS.items():
        shown = f"the same as --entity-type {kind} --entity-name NAME" if kind in SERVED else argparse.SUPPRESS
        whose.add_argument(f"--{option.replace('_', '-')}", metavar="NAME", help=shown)
    for option, kind in DEFAULT_SHORTCUTS.items():
        shown = f"the same as --entity-type {kind} --entity-default" if kind in SERVED else argparse.SUPPRESS
        whose.add_argument(f"--{option.replace('_', '-')}", action="store_true", help=shown)
    parser.add_argument("--force", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--bootstrap-controller", metavar="HOST:PORT", help=argparse.SUPPRESS)
    add_connection_options(parser)
    return parser


def _wanted(args: argparse.Namespace) -> list[Entity]:
    """Whose settings, from --entity-type and --entity-name or from shortcuts: one, or a user and a client."""
    if args.bootstrap_controller:
        raise CommandError("--bootstrap-controller: brokers answer for the controller, give --bootstrap-server")
    short = [
        Entity(kind, getattr(args, option)) for option, kind in SHORTCUTS.items() if getattr(args, option) is not None
    ]
    short += [Entity(kind, DEFAULTS) for option, kind in DEFAULT_SHORTCUTS.items() if getattr(args, option)]
    types: list[str] = args.entity_type or []
    names: list[str] = args.entity_name or []
    if short and (types or names):
        raise CommandError(
            "--entity-type, --entity-name and --entity-default do not go with forms such as --topic NAME"
        )
    for kind in [*types, *(entity.kind for entity in short)]:
        if kind not in SERVED:
            raise CommandError(f"`{kind}` is not a kind of thing with settings: use one of {', '.join(SERVED)}")
    wanted = short or [Entity(kind, name) for kind, name in zip_longest(types, names[: len(types)])]
    if len(names) > len(types) and types:
        raise CommandError(f"give one --entity-name or --entity-default for each --entity-type, not {len(names)}")
    if not wanted or (len(wanted) > 1 and not any(entity.kind in client_quotas.TYPES for entity in wanted)):
        raise CommandError("say whose settings, once: --entity-type topics --entity-name NAME, or --topic NAME")
    if len(wanted) == 1:
        _check_name(wanted[0])
    return sorted(wanted, key=lambda entity: entity.kind not in client_quotas.TYPES)


def _check_name(entity: Entity) -> None:
    if entity.name == DEFAULTS and entity.kind in ("broker-loggers", "client-metrics"):
        raise CommandError(f"{entity.kind} have no defaults")
    if entity.name == DEFAULTS and entity.kind in ("topics", "groups"):
        raise CommandError(
            f"{entity.kind} have no defaults of their own: theirs are the brokers', see --broker-defaults"
        )
    if entity.kind in ("brokers", "broker-loggers") and entity.name and not entity.name.isdigit():
        raise CommandError(f"a broker is named by its number, not `{entity.name}`")
    if entity.kind == "topics" and entity.name:
        check_topic_name(entity.name)


async def _describe(cluster: Cluster, entity: Entity, args: argparse.Namespace) -> int:
    documents: list[dict[str, object]] = []
    for name in [entity.name] if entity.name is not None else await _names(cluster, entity.kind):
        settings = await _settings(cluster, entity.kind, name, everything=args.all)
        if args.json:
            documents.append(
                {"entity_type": entity.kind, "entity_name": name, "configs": [_as_json(s) for s in settings]}
            )
            continue
        if name == DEFAULTS:
            print(f"Default configs for {entity.kind} in the cluster are:")
        else:
            print(f"{'All' if args.all else 'Dynamic'} configs for {entity.one} {name} are:")
        for setting in settings:
            print(f"  {_line(setting)}")
    if args.json:
        print_json(documents)
    return 0


async def _names(cluster: Cluster, kind: str) -> list[str]:
    """Everything of a kind."""
    if kind == "topics":
        return [topic.name for topic in await admin.list_topics(cluster)]
    if kind == "brokers":
        await cluster.metadata([])
        return [*(str(node) for node in sorted(cluster.brokers)), DEFAULTS]
    if kind == "broker-loggers":
        await cluster.metadata([])
        return [str(node) for node in sorted(cluster.brokers)]
    if kind == "client-metrics":
        return await list_config_resources(cluster, ResourceType.CLIENT_METRICS)
    from ottla.client.groups import list_groups

    return [group.group_id for group in await list_groups(cluster)]


async def _settings(cluster: Cluster, kind: str, name: str, *, everything: bool) -> list[DescribeConfigsResourceResult]:
    """The settings of one thing: all, or those set for it alone."""
    resource = Resource(KINDS[kind].resource_type, name)
    settings = (await admin.describe_configs(cluster, [resource]))[resource]
    source = KINDS[kind].own_source
    if kind == "brokers" and name == DEFAULTS:
        source = ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG
    return [setting for setting in settings if everything or setting.config_source == source]


def _line(setting: DescribeConfigsResourceResult) -> str:
    synonyms = ", ".join(f"{_source(s.source)}:{s.name}={_shown(s.value)}" for s in setting.synonyms)
    return (
        f"{setting.name}={_shown(setting.value)} sensitive={str(setting.is_sensitive).lower()} synonyms={{{synonyms}}}"
    )


def _shown(value: str | None) -> str:
    return "null" if value is None else value


def _source(number: int) -> str:
    return ConfigSource(number).name if number in list(ConfigSource) else "UNKNOWN"


def _as_json(setting: DescribeConfigsResourceResult) -> dict[str, object]:
    return {
        "name": setting.name,
        "value": setting.value,
        "source": _source(setting.config_source),
        "sensitive": setting.is_sensitive,
        "read_only": setting.read_only,
        "synonyms": [{"name": s.name, "value": s.value, "source": _source(s.source)} for s in setting.synonyms],
    }


def _added(args: argparse.Namespace) -> dict[str, str]:
    return read_properties(args.add_config_file) if args.add_config_file else parse_additions(args.add_config or "")


async def _alter(cluster: Cluster, entity: Entity, args: argparse.Namespace) -> int:
    name = entity.name or DEFAULTS
    added = _added(args)
    deleted = _deleted(args)
    own = {setting.name for setting in await _settings(cluster, entity.kind, name, everything=False)}
    for key in deleted:
        if key not in own:
            note(f"{key} was not set for {entity.one} {name or 'defaults'}")
    await admin.alter_configs(cluster, Resource(KINDS[entity.kind].resource_type, name), add=added, delete=deleted)
    if args.json:
        print_json({"entity_type": entity.kind, "entity_name": name, "added": added, "deleted": deleted})
    elif name:
        print(f"Completed updating config for {entity.one} {name}.")
    else:
        print(f"Completed updating default config for {entity.kind} in the cluster.")
    return 0


_ADDITION = re.compile(r"\s*(?P<key>[^=,\[\]\s]+)\s*=\s*(?P<value>\[[^\]]*\]|[^,\[\]]*)\s*(?:,|$)")


def parse_additions(text: str) -> dict[str, str]:
    """`k=v,k=[v,v],k=`: commas part settings except inside brackets, and the brackets are taken off."""
    added: dict[str, str] = {}
    position = 0
    while position < len(text):
        match = _ADDITION.match(text, position)
        if match is None:
            where = "" if "password" in text.lower() else f"; `{text[position:]}` does not read so"
            raise CommandError(f"--add-config wants key=value,key=[value,value]{where}")
        if not re.fullmatch(r"[a-zA-Z0-9._-]+", match["key"]):
            raise CommandError(f"--add-config: `{match['key']}` is no name of a setting")
        added[match["key"]] = match["value"].strip().strip("[]").strip()
        position = match.end()
    return added
