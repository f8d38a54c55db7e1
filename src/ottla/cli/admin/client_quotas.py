"""The part of `kafka-configs` that is about quotas: of users, client ids, both together, and addresses."""

import argparse
from collections.abc import Mapping, Sequence
from decimal import Decimal

from ottla.cli.admin import scram_configs
from ottla.cli.common.admin_session import run_admin
from ottla.cli.common.options import ToolParser
from ottla.cli.common.output import CommandError, note, print_json
from ottla.client.cluster import Cluster
from ottla.client.quotas import ANY_NAME, AnyName, SetQuotas, alter_client_quotas, describe_client_quotas
from ottla.config.client_quotas import CLIENT_QUOTAS, IP_QUOTAS
from ottla.model.error_words import in_words
from ottla.model.errors import ApiError

TYPES: Mapping[str, str] = {"users": "user", "clients": "client-id", "ips": "ip"}
"""The kinds of this tool in the protocol's words, in the order in which they are shown."""

SHOWN: Mapping[str, str] = {"user": "user-principal", "client-id": "client-id", "ip": "ip"}
DEFAULT_NAME = ""

Wanted = Sequence[tuple[str, str | None]]
"""Kinds with names: empty for the default, None for all of a kind."""


def run(parser: ToolParser, args: argparse.Namespace, wanted: Wanted, added: Mapping[str, str]) -> int:
    """Describe or alter, as the arguments say. `added` are the settings to set, as text."""
    kinds = [kind for kind, _ in wanted]
    if sorted(set(kinds)) != sorted(kinds) or ("ips" in kinds and len(kinds) > 1) or set(kinds) - set(TYPES):
        raise CommandError(
            f"quotas are for {', '.join(TYPES)}, or for users and clients together, not for {' and '.join(kinds)}"
        )
    try:
        if args.describe:
            return run_admin(args, lambda cluster: _describe(cluster, wanted, args))
        if any(name is None for _, name in wanted):
            parser.error("--alter needs a name for every kind: give --entity-name or --entity-default behind each")
        add, delete = _numbers(wanted, added), _deleted(args)
        _check_keys(wanted, [*add, *delete])
        return run_admin(args, lambda cluster: _alter(cluster, wanted, add, delete, args))
    except ApiError as error:
        raise CommandError(f"quotas of {_entity_words(_filter(wanted))}: {in_words(error)}") from error


def _numbers(wanted: Wanted, added: Mapping[str, str]) -> dict[str, float]:
    _check_keys(wanted, added)
    numbers = {}
    for key, text in added.items():
        try:
            numbers[key] = float(text)
        except ValueError:
            raise CommandError(f"Cannot parse quota configuration value for {key}: {text}") from None
    return numbers


def _deleted(args: argparse.Namespace) -> list[str]:
    return [key.strip() for keys in args.delete_config or [] for key in keys.split(",") if key.strip()]


def _check_keys(wanted: Wanted, keys: Mapping[str, object] | Sequence[str]) -> None:
    known = IP_QUOTAS if wanted[0][0] == "ips" else CLIENT_QUOTAS
    unknown = [key for key in keys if key not in known]
    if unknown:
        what = "connection quota" if known is IP_QUOTAS else "quota"
        raise CommandError(
            f"Only {what} configs can be added for '{wanted[-1][0]}'. Unexpected config names: {', '.join(unknown)}; "
            f"there are {', '.join(known)}"
        )


def _filter(wanted: Wanted) -> dict[str, str | AnyName | None]:
    names = {TYPES[kind]: ANY_NAME if name is None else name or None for kind, name in wanted}
    return {kind: names[kind] for kind in TYPES.values() if kind in names}


async def _describe(cluster: Cluster, wanted: Wanted, args: argparse.Namespace) -> int:
    found = sorted(await describe_client_quotas(cluster, _filter(wanted)), key=_turn)
    scram = await scram_configs.described(cluster, wanted)
    if args.json:
        told: list[dict[str, object]] = [{"entity": dict(names), "quotas": dict(quotas)} for names, quotas in found]
        print_json([*told, *({"entity": {"user": user}, "scram": known} for user, known in scram.items())])
        return 0
    for names, quotas in found:
        values = ", ".join(f"{key}={java_double(value)}" for key, value in quotas.items())
        print(f"Quota configs for {_entity_words(names)} are {values}")
    for user, known in scram.items():
        print(scram_configs.line(user, known))
    return 0


def _turn(found: SetQuotas) -> list[tuple[str, bool, str]]:
    """Names before defaults, each in order."""
    return [(kind, name is None, name or "") for kind, name in found.names.items()]


def _entity_words(names: Mapping[str, str | AnyName | None]) -> str:
    return ", ".join(_name_words(SHOWN[kind], names[kind]) for kind in SHOWN if kind in names)


def _name_words(kind: str, name: str | AnyName | None) -> str:
    if isinstance(name, AnyName):
        return f"every {kind}"
    return f"the default {kind}" if name is None else f"{kind} '{name}'"


async def _alter(
    cluster: Cluster, wanted: Wanted, add: Mapping[str, float], delete: Sequence[str], args: argparse.Namespace
) -> int:
    names = {TYPES[kind]: name or None for kind, name in wanted}
    if delete:
        found = await describe_client_quotas(cluster, names)
        for key in delete:
            if not any(key in quotas for _, quotas in found):
                note(f"{key} was not set for {_entity_words(names)}")
    await alter_client_quotas(cluster, names, add=add, delete=delete)
    kind, name = wanted[0]
    if args.json:
        print_json({"entity": names, "added": dict(add), "deleted": list(delete)})
    elif name:
        print(f"Completed updating config for {kind.removesuffix('s')} {name}.")
    else:
        print(f"Completed updating default config for {kind} in the cluster.")
    return 0


def java_double(value: float) -> str:
    """A number as Kafka's tool prints it: from ten million on with an exponent."""
    if 1e-3 <= value < 1e7:
        return repr(float(value))
    digits = repr(float(value)).split("e")[0].replace(".", "").strip("0")
    exponent = int(f"{Decimal(repr(float(value))):e}".split("e")[1])
    return f"{digits[0]}.{digits[1:] or '0'}E{exponent}"
