"""`kafka-delegation-tokens`: create, renew, expire and show tokens that others can log in with."""

import argparse
import base64
import binascii
import datetime
from collections.abc import Sequence

from ottla.cli.common.admin_session import run_admin
from ottla.cli.common.options import ToolParser, add_connection_options
from ottla.cli.common.output import CommandError, print_json
from ottla.client.cluster import Cluster
from ottla.client.delegation_tokens import Principal, create_token, describe_tokens, expire_token, renew_token
from ottla.model.error_words import in_words
from ottla.model.errors import ApiError
from ottla.protocol.messages.describe_delegation_token import DescribedDelegationToken

EXAMPLES = """
  %(prog)s --command-config admin.properties --create --max-life-time-period -1 --renewer-principal User:scheduler
  %(prog)s --command-config admin.properties --describe
  %(prog)s --command-config admin.properties --renew --renew-time-period -1 --hmac HMAC
  %(prog)s --command-config admin.properties --expire --expiry-time-period -1 --hmac HMAC

A client logs in with a token by SCRAM: the token's id as username, its HMAC as password, and tokenauth="true" in the
JAAS line. Whoever sees the HMAC can do so: it is a password.
"""
ACTIONS = ("create", "renew", "expire", "describe")


def main(argv: Sequence[str] | None = None, prog: str = "ottla delegation-tokens") -> int:
    parser = _parser(prog)
    args = parser.parse(argv)
    chosen = [action for action in ACTIONS if getattr(args, action)]
    if len(chosen) != 1:
        parser.error("Command must include exactly one action: --create, --renew, --expire or --describe")
    _check(parser, args, chosen[0])
    work = {"create": _create, "renew": _renew, "expire": _expire, "describe": _describe}[chosen[0]]
    try:
        return run_admin(args, lambda cluster: work(cluster, args))
    except ApiError as error:
        raise CommandError(f"delegation token: {in_words(error)}") from error


def _parser(prog: str) -> ToolParser:
    parser = ToolParser(prog, "Create, renew, expire and show delegation tokens.", EXAMPLES)
    for action in ACTIONS:
        parser.add_argument(f"--{action}", action="store_true", help=f"{action} a token")
    parser.add_argument("--owner-principal", action="append", metavar="User:NAME", help="whose token it is")
    parser.add_argument("--renewer-principal", action="append", metavar="User:NAME", help="who else may renew it")
    parser.add_argument(
        "--max-life-time-period", type=int, metavar="MS", help="with --create; -1: the broker's longest"
    )
    parser.add_argument("--renew-time-period", type=int, metavar="MS", help="with --renew; -1: as the broker says")
    parser.add_argument("--expiry-time-period", type=int, metavar="MS", help="with --expire; -1: now")
    parser.add_argument("--hmac", metavar="BASE64", help="the token to renew or expire")
    add_connection_options(parser)
    return parser


def _check(parser: ToolParser, args: argparse.Namespace, action: str) -> None:
    needed = {
        "create": ("max_life_time_period",),
        "renew": ("hmac", "renew_time_period"),
        "expire": ("hmac", "expiry_time_period"),
        "describe": (),
    }[action]
    for option in needed:
        if getattr(args, option) is None:
            parser.error(f"--{action} needs --{option.replace('_', '-')}")
    if not args.command_config:
        parser.error("--command-config is needed: tokens are for those who have logged in")


def _principals(texts: Sequence[str] | None) -> list[Principal]:
    found = []
    for text in texts or ():
        kind, colon, name = text.strip().partition(":")
        if not colon or not kind or not name:
            raise CommandError(f"a principal is written as User:NAME, not `{text}`")
        found.append((kind, name))
    return found


def _secret(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        raise CommandError("--hmac is not in base64, as --create and --describe print it") from None


async def _create(cluster: Cluster, args: argparse.Namespace) -> int:
    owners = _principals(args.owner_principal)
    if len(owners) > 1:
        raise CommandError("a token has one owner: give --owner-principal once")
    renewers = _principals(args.renewer_principal)
    made = await create_token(cluster, renewers, args.max_life_time_period, owners[0] if owners else None)
    tokens = [token for token in await describe_tokens(cluster, []) if token.token_id == made.token_id]
    if not args.json:
        print(f"Created delegation token with tokenId : {made.token_id}")
    return _show(tokens, as_json=args.json)


async def _renew(cluster: Cluster, args: argparse.Namespace) -> int:
    expires = await renew_token(cluster, _secret(args.hmac), args.renew_time_period)
    return _told(args, "Completed renew operation. New expiry date", expires)


async def _expire(cluster: Cluster, args: argparse.Namespace) -> int:
    expires = await expire_token(cluster, _secret(args.hmac), args.expiry_time_period)
    return _told(args, "Completed expire operation. New expiry date", expires)


async def _describe(cluster: Cluster, args: argparse.Namespace) -> int:
    tokens = await describe_tokens(cluster, _principals(args.owner_principal))
    if not args.json:
        print(f"Total number of tokens : {len(tokens)}")
    return _show(tokens, as_json=args.json)


def _told(args: argparse.Namespace, words: str, expires_ms: int) -> int:
    if args.json:
        print_json({"expiry_timestamp_ms": expires_ms})
    else:
        print(f"{words} : {_date(expires_ms)}")
    return 0


def _show(tokens: Sequence[DescribedDelegationToken], *, as_json: bool) -> int:
    if as_json:
        print_json([_as_json(token) for token in tokens])
        return 0
    print(_row("TOKENID", "HMAC", "OWNER", "REQUESTER", "RENEWERS", "ISSUEDATE", "EXPIRYDATE", "MAXDATE"))
    for token in tokens:
        times = (token.issue_timestamp, token.expiry_timestamp, token.max_timestamp)
        renewers = f"[{', '.join(f'{each.principal_type}:{each.principal_name}' for each in token.renewers)}]"
        print(_row(token.token_id, _hmac(token), _owner(token), _requester(token), renewers, *map(_date, times)))
    return 0


def _row(*cells: str) -> str:
    widths = (15, 30, 15, 15, 25, 15, 15, 15)
    return " ".join(f"{cell:<{width}}" for cell, width in zip(cells, widths, strict=True)).rstrip()


def _hmac(token: DescribedDelegationToken) -> str:
    return base64.b64encode(token.hmac).decode()


def _owner(token: DescribedDelegationToken) -> str:
    return f"{token.principal_type}:{token.principal_name}"


def _requester(token: DescribedDelegationToken) -> str:
    return f"{token.token_requester_principal_type}:{token.token_requester_principal_name}"


def _as_json(token: DescribedDelegationToken) -> dict[str, object]:
    return {
        "token_id": token.token_id,
        "hmac": _hmac(token),
        "owner": _owner(token),
        "requester": _requester(token),
        "renewers": [f"{each.principal_type}:{each.principal_name}" for each in token.renewers],
        "issue_timestamp_ms": token.issue_timestamp,
        "expiry_timestamp_ms": token.expiry_timestamp,
        "max_timestamp_ms": token.max_timestamp,
    }


def _date(ms: int) -> str:
    return datetime.datetime.fromtimestamp(ms / 1000, datetime.UTC).strftime("%Y-%m-%dT%H:%M")
