"""Access control lists, each as a sentence; rules added and removed; what somebody may do."""

from typing import Any

from ottla.client import acls
from ottla.console import paging
from ottla.console.asking import Ask, BadInput, Done
from ottla.console.commands import command
from ottla.console.rules_in_words import may, sentence
from ottla.model.acls import (
    CLUSTER_NAME,
    OPERATION_WORDS,
    OPERATIONS_BY_WORD,
    PERMISSION_WORDS,
    PERMISSIONS_BY_WORD,
    RESOURCE_WORDS,
    RESOURCES_BY_WORD,
    AclBinding,
    AclEntry,
    AclFilter,
    PatternType,
    ResourcePattern,
    grantable_on,
    why_not_valid,
)
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.rights import Resource

NO_ACLS = (ErrorCode.SECURITY_DISABLED, ErrorCode.UNSUPPORTED_VERSION)


async def show(ask: Ask) -> dict[str, Any]:
    rules, off = await _rules(ask)
    page = paging.cut(
        rules,
        ask.fields.mapping(),
        text=lambda each: f"{sentence(each)} {each.entry.principal} {each.pattern.name}",
        keys={
            "principal": lambda each: (each.entry.principal, each.pattern),
            "resource": lambda each: (each.pattern, each.entry.principal),
        },
        sort="principal",
    )
    who, kind, name = ask.fields.get("who"), ask.fields.get("kind") or "topic", ask.fields.get("name")
    verdicts = []
    if who:
        principal = who if ":" in who else f"User:{who}"
        verdicts = may(rules, principal, _resource(kind), name)
    return {
        "items": [_row(each) for each in page.items],
        **page.facts(),
        "off": off,
        "who": who,
        "kind": kind,
        "name": name,
        "verdicts": verdicts,
        "_page": page,
        "_resources": [word.lower() for word in RESOURCE_WORDS.values()],
        "_operations": sorted(OPERATION_WORDS.values()),
        "_command": command(ask, "kafka-acls", "--list"),
        "_add": command(
            ask,
            "kafka-acls",
            "--add",
            "--allow-principal",
            "User:NAME",
            "--operation",
            "READ",
            "--topic",
            "TOPIC",
            "--resource-pattern-type",
            "literal",
        ),
    }


async def _rules(ask: Ask) -> tuple[list[AclBinding], str]:
    try:
        return await acls.describe_acls(ask.watched.cluster, AclFilter()), ""
    except ApiError as error:
        if error.code in NO_ACLS:
            return [], error.message or "the brokers have no authorizer: everybody may do everything"
        raise


def _row(binding: AclBinding) -> dict[str, str]:
    pattern, entry = binding
    return {
        "sentence": sentence(binding),
        "permission": PERMISSION_WORDS[entry.permission],
        "principal": entry.principal,
        "host": entry.host,
        "operation": OPERATION_WORDS.get(entry.operation, str(entry.operation)),
        "resource": RESOURCE_WORDS[pattern.resource],
        "name": pattern.name,
        "pattern": pattern.type.name.lower(),
    }


def _resource(word: str) -> Resource:
    found = RESOURCES_BY_WORD.get(word.strip().lower().replace("-", "").replace("_", ""))
    if found is None:
        raise BadInput(f"there is no kind of resource `{word}`: one of {', '.join(RESOURCE_WORDS.values())}")
    return found


def _binding(ask: Ask) -> AclBinding:
    fields = ask.fields
    resource = _resource(fields.need("resource", "the kind of resource"))
    operation = OPERATIONS_BY_WORD.get(fields.need("operation").lower())
    permission = PERMISSIONS_BY_WORD.get((fields.get("permission") or "allow").lower())
    pattern = {"literal": PatternType.LITERAL, "prefixed": PatternType.PREFIXED}.get(fields.get("pattern") or "literal")
    if operation is None or permission is None or pattern is None:
        raise BadInput("a rule has an operation, allow or deny, and a literal or prefixed name")
    if operation not in grantable_on(resource):
        raise BadInput(f"{OPERATION_WORDS[operation]} is nothing that can be done with a {RESOURCE_WORDS[resource]}")
    name = CLUSTER_NAME if resource is Resource.CLUSTER else fields.need("name", "the name of the resource")
    principal = fields.need("principal", "who the rule is about")
    binding = AclBinding(
        ResourcePattern(resource, name, pattern),
        AclEntry(
            principal if ":" in principal else f"User:{principal}",
            fields.get("host").strip() or "*",
            operation,
            permission,
        ),
    )
    wrong = why_not_valid(binding)
    if wrong is not None:
        raise BadInput(wrong)
    return binding


async def add(ask: Ask) -> Done:
    binding = _binding(ask)
    await acls.create_acls(ask.watched.cluster, [binding])
    return Done(f"from now on {sentence(binding)}", ask.link("/acls"), _row(binding), str(binding))


async def remove(ask: Ask) -> Done:
    binding = _binding(ask)
    pattern, entry = binding
    wanted = AclFilter(
        pattern.resource, pattern.name, pattern.type, entry.principal, entry.host, entry.operation, entry.permission
    )
    removed = await acls.delete_acls(ask.watched.cluster, [wanted])
    words = f"the rule is gone that {sentence(binding)}" if removed else "there was no such rule"
    return Done(words, ask.link("/acls"), {"removed": len(removed)}, str(binding))
