"""Which subject a resource, such as a topic, has its schemas in: links that clients ask for first. Pure."""

import hashlib
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from ottla.registry import records
from ottla.registry.errors import Code, RegistryError
from ottla.registry.records import RegistryRecord
from ottla.registry.state import RegistryState
from ottla.registry.subjects import check_subject

ANY_NAMESPACE = "-"
RESOURCE_KEY = ("resourceName", "resourceNamespace", "resourceId", "resourceType")
_LIFECYCLES = ("STRONG", "WEAK")
_OPERATIONS = ("CREATE", "UPSERT", "DELETE")


def is_meant(association: Mapping[str, Any], kind: str | None, types: Sequence[str]) -> bool:
    return (kind is None or association["resourceType"] == kind) and (
        not types or association["associationType"] in types
    )


def find(
    state: RegistryState, *, namespace: str, name: str, kind: str | None = None, types: Sequence[str] = ()
) -> list[dict[str, Any]]:
    return [
        each
        for _, each in sorted(state.associations.items())
        if each["resourceName"] == name
        and (namespace == ANY_NAMESPACE or each["resourceNamespace"] == namespace)
        and is_meant(each, kind, types)
    ]


def find_by_id(
    state: RegistryState, resource_id: str, kind: str | None = None, types: Sequence[str] = ()
) -> list[dict[str, Any]]:
    return [
        each
        for _, each in sorted(state.associations.items())
        if each["resourceId"] == resource_id and is_meant(each, kind, types)
    ]


def find_any(state: RegistryState, wanted: Mapping[str, Any]) -> list[dict[str, Any]]:
    """By id, or by name and namespace, as one of several questions asks for it."""
    kind, types = wanted.get("resourceType"), wanted.get("associationTypes") or []
    if wanted.get("resourceId"):
        found = find_by_id(state, wanted["resourceId"], kind, types)
    elif isinstance(wanted.get("resourceName"), str):
        namespace = wanted.get("resourceNamespace") or ANY_NAMESPACE
        found = find(state, namespace=namespace, name=wanted["resourceName"], kind=kind, types=types)
    else:
        raise _invalid("a resource is asked for by resourceId or resourceName")
    return [each for each in found if wanted.get("lifecycle") in (None, each["lifecycle"])]


def operations(request: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What one of several requests wants done, in order."""
    given = request.get("associations")
    if not isinstance(given, list) or not given:
        raise _invalid("`associations` is a list of objects with opType and associationType")
    for each in given:
        if not isinstance(each, dict) or each.get("opType") not in _OPERATIONS:
            raise _invalid(f"opType is one of {', '.join(_OPERATIONS)}")
    return given


def find_by_subject(state: RegistryState, subject: str) -> list[dict[str, Any]]:
    return [each for _, each in sorted(state.associations.items()) if each["subject"] == subject]


def put(
    state: RegistryState, request: Mapping[str, Any], *, create_only: bool
) -> tuple[dict[str, Any], list[RegistryRecord]]:
    name, resource_id = request.get("resourceName"), request.get("resourceId")
    if not isinstance(name, str) or not name or not isinstance(resource_id, str) or not resource_id:
        raise _invalid("an association needs resourceName and resourceId")
    resource = {
        "resourceName": name,
        "resourceNamespace": request.get("resourceNamespace") or "default",
        "resourceId": resource_id,
        "resourceType": request.get("resourceType") or "topic",
    }
    given = request.get("associations")
    if not isinstance(given, list) or not given or not all(isinstance(each, dict) for each in given):
        raise _invalid("`associations` is a list of objects with subject and associationType")
    answers, written = [], []
    for each in given:
        one = _association(resource, each)
        before = find(
            state,
            namespace=one["resourceNamespace"],
            name=name,
            kind=one["resourceType"],
            types=[one["associationType"]],
        )
        if before and (before[0]["frozen"] or create_only) and before[0]["subject"] != one["subject"]:
            raise RegistryError(
                Code.ASSOCIATION_EXISTS,
                f"{name} has its {one['associationType']} schemas in {before[0]['subject']} already",
            )
        written += [records.association_record(old, gone=True) for old in before if old["subject"] != one["subject"]]
        written.append(records.association_record(one))
        answers.append({key: one[key] for key in ("subject", "associationType", "lifecycle", "frozen")})
    return {**resource, "associations": answers}, written


def delete(state: RegistryState, resource_id: str, kind: str | None, types: Sequence[str]) -> list[RegistryRecord]:
    found = find_by_id(state, resource_id, kind, types)
    if not found:
        raise RegistryError(Code.ASSOCIATION_NOT_FOUND, f"Resource '{resource_id}' has no associations")
    return [records.association_record(each, gone=True) for each in found]


def _association(resource: dict[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    kind = given.get("associationType") or "value"
    subject = given.get("subject") or f"{resource['resourceName']}-{kind}"
    lifecycle = given.get("lifecycle") or "WEAK"
    if kind not in ("key", "value"):
        raise _invalid(f"associationType is key or value, not {kind}")
    if lifecycle not in _LIFECYCLES:
        raise _invalid(f"lifecycle is STRONG or WEAK, not {lifecycle}")
    check_subject(subject)
    named = "/".join((resource["resourceNamespace"], resource["resourceName"], resource["resourceType"], kind, subject))
    guid = uuid.UUID(bytes=hashlib.md5(named.encode(), usedforsecurity=False).digest())
    return {
        "subject": subject,
        "guid": str(guid),
        **resource,
        "associationType": kind,
        "lifecycle": lifecycle,
        "frozen": bool(given.get("frozen", False)),
    }


def _invalid(text: str) -> RegistryError:
    return RegistryError(Code.INVALID_ASSOCIATION, text)
