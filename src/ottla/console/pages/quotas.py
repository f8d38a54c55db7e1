"""Quotas of users, client ids and addresses, each as a sentence."""

from typing import Any

from ottla.client.quotas import Names, SetQuotas, alter_client_quotas, describe_client_quotas
from ottla.console.asking import Ask, BadInput, Done
from ottla.console.commands import command
from ottla.console.wording import size
from ottla.model.errors import ApiError

KEYS = {
    "producer_byte_rate": "bytes a second written",
    "consumer_byte_rate": "bytes a second read",
    "request_percentage": "percent of a thread's time",
    "controller_mutation_rate": "partitions a second made or deleted",
    "connection_creation_rate": "new connections a second",
}
_TYPES = ("user", "client-id", "ip")
_DEFAULT = "<default>"


async def show(ask: Ask) -> dict[str, Any]:
    why = ""
    found: list[SetQuotas] = []
    try:
        found = await describe_client_quotas(ask.watched.cluster, {}, strict=False)
    except ApiError as error:
        why = error.message or error.code.name
    rows = [
        {"entity": _names(each.names), "words": in_words(each), "quotas": dict(each.quotas)}
        for each in sorted(found, key=lambda each: sorted((kind, name or "") for kind, name in each.names.items()))
    ]
    return {
        "items": rows,
        "why": why,
        "_keys": KEYS,
        "_default": _DEFAULT,
        "_set": command(
            ask,
            "kafka-configs",
            "--alter",
            "--entity-type",
            "users",
            "--entity-name",
            "NAME",
            "--add-config",
            "producer_byte_rate=1048576",
        ),
        "_command": command(ask, "kafka-configs", "--describe", "--entity-type", "users", "--entity-type", "clients"),
    }


def _names(names: Names) -> dict[str, str]:
    return {kind: _DEFAULT if name is None else name for kind, name in names.items()}


def in_words(each: SetQuotas) -> str:
    """`user alice may use 1 MB a second written`."""
    who = []
    for kind in _TYPES:
        if kind in each.names:
            name = each.names[kind]
            word = {"user": "user", "client-id": "client", "ip": "address"}[kind]
            who.append(f"every other {word}" if name is None else f"{word} {name}")
    limits = [
        f"{size(value) if key.endswith('byte_rate') else f'{value:g}'} "
        + KEYS.get(key, key).removeprefix("bytes " if key.endswith("byte_rate") else "")
        for key, value in sorted(each.quotas.items())
    ]
    return f"{' as '.join(who)}: at most {', '.join(limits)}"


async def change(ask: Ask) -> Done:
    """An empty value takes a quota away."""
    names: dict[str, str | None] = {}
    for kind, field in (("user", "user"), ("client-id", "client"), ("ip", "ip")):
        text = ask.fields.get(field).strip()
        if text:
            names[kind] = None if text == _DEFAULT else text
    if not names:
        raise BadInput(f"say whose quota it is: a user, a client id or an address; {_DEFAULT} for all others")
    key = ask.fields.need("key", "the quota")
    if key not in KEYS:
        raise BadInput(f"a quota is one of {', '.join(KEYS)}, not `{key}`")
    text = ask.fields.get("value").strip()
    try:
        value = float(text) if text else None
    except ValueError:
        raise BadInput(f"value wants a number, not `{text}`") from None
    await alter_client_quotas(
        ask.watched.cluster,
        names,
        add={} if value is None else {key: value},
        delete=[key] if value is None else [],
    )
    who = " ".join(f"{kind} {_DEFAULT if name is None else name}" for kind, name in names.items())
    words = f"{key} of {who} is {'taken away' if value is None else f'{value:g}'}"
    return Done(words, ask.link("/quotas"), {"entity": _names(names), "key": key, "value": value}, who)
