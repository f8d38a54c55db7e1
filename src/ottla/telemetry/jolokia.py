"""Jolokia's protocol: JMX as JSON over HTTP, which Telegraf, JMX consoles and kafka-jmx speak. Pure.

read, search, list and version are answered. Errors are a status inside a reply of HTTP 200, as Jolokia's are.
"""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from ottla.telemetry.jmx import BadName, Beans, ObjectName, parse

PROTOCOL = "7.2"
AGENT = "ottla"

Reply = dict[str, Any]
Find = Callable[[ObjectName], Beans]
"""All MBeans that a name or a pattern means, with their attributes."""

_NOT_FOUND = 404
_BAD_REQUEST = 400
_INSTANCE = "javax.management.InstanceNotFoundException"
_ATTRIBUTE = "javax.management.AttributeNotFoundException"
_MALFORMED = "java.lang.IllegalArgumentException"
EVERYTHING = "*:*"


class _Refusal(Exception):
    def __init__(self, status: int, kind: str, text: str) -> None:
        super().__init__(text)
        self.status, self.kind, self.text = status, kind, text


def from_path(path: str) -> Reply:
    """The request that a GET makes: /read/MBEAN/ATTRIBUTE/PATH and the like, with ! in front of what is not meant."""
    parts = _split(path.strip("/"))
    kind = parts[0] or "version"
    if kind == "read":
        request: Reply = {"type": kind, "mbean": parts[1] if len(parts) > 1 else ""}
        if len(parts) > 2:
            wanted = parts[2].split(",")
            request["attribute"] = wanted if len(wanted) > 1 else wanted[0]
        if len(parts) > 3:
            request["path"] = "/".join(map(_escaped, parts[3:]))
        return request
    if kind == "search":
        return {"type": kind, "mbean": parts[1] if len(parts) > 1 else ""}
    if kind == "list":
        return {"type": kind, **({"path": "/".join(map(_escaped, parts[1:]))} if len(parts) > 1 else {})}
    return {"type": kind}


def _split(path: str) -> list[str]:
    """At slashes that have no ! in front of them."""
    parts = re.findall(r"((?:![\s\S]|[^/!])*)(?:/|$)", path)
    return [re.sub(r"!([\s\S])", r"\1", part) for part in parts[: path.count("/") + 1] if part] or [""]


def _escaped(part: str) -> str:
    return part.replace("!", "!!").replace("/", "!/")


def patterns_of(request: Any) -> list[ObjectName]:
    """What has to be read to answer; nothing if that does not depend on it or cannot be understood."""
    if not isinstance(request, dict):
        return []
    kind = request.get("type")
    try:
        if kind in ("read", "search"):
            return [parse(str(request.get("mbean", "")))]
        if kind == "list":
            return [_listed(request)]
    except BadName:
        return []
    return []


def answer(request: Any, find: Find, now_s: int, details: Mapping[str, str]) -> Reply:
    """The reply to one request."""
    try:
        if not isinstance(request, dict):
            raise _Refusal(_BAD_REQUEST, _MALFORMED, "a request is an object with a type")
        reply: Reply = {"request": request, "value": _value(request, find, details), "status": 200}
    except _Refusal as refusal:
        reply = {
            "request": request,
            "error_type": refusal.kind,
            "error": f"{refusal.kind} : {refusal.text}",
            "status": refusal.status,
        }
    except BadName as error:
        reply = {
            "request": request,
            "error_type": "javax.management.MalformedObjectNameException",
            "error": f"javax.management.MalformedObjectNameException : {error}",
            "status": _BAD_REQUEST,
        }
    reply["timestamp"] = now_s
    return reply


def not_json(error: json.JSONDecodeError) -> Reply:
    """The reply to a body that is not JSON."""
    text = f"the body is not JSON: {error}"
    return {"error_type": _MALFORMED, "error": f"{_MALFORMED} : {text}", "status": _BAD_REQUEST}


def _value(request: Reply, find: Find, details: Mapping[str, str]) -> Any:
    match request.get("type"):
        case "read":
            return _read(request, find)
        case "search":
            return sorted(find(parse(str(request.get("mbean", "")))))
        case "list":
            return _list(request, find)
        case "version":
            return {"agent": AGENT, "protocol": PROTOCOL, "config": {}, "info": dict(details)}
        case other:
            text = f"'{other}' is not served: read, search, list and version are"
            raise _Refusal(_BAD_REQUEST, _MALFORMED, text)


def _read(request: Reply, find: Find) -> Any:
    name = parse(str(request.get("mbean", "")))
    found, wanted = find(name), request.get("attribute")
    if not found:
        raise _Refusal(_NOT_FOUND, _INSTANCE, f"No MBean with name {request.get('mbean')} found")
    if name.is_pattern:
        chosen = {mbean: _chosen(attributes, wanted) for mbean, attributes in found.items()}
        value: Any = {mbean: attributes for mbean, attributes in chosen.items() if attributes}
        if not value:
            raise _Refusal(_NOT_FOUND, _ATTRIBUTE, f"no MBean of {request.get('mbean')} has {wanted}")
        return _at(value, request.get("path"))
    (attributes,) = found.values()
    if wanted is None or isinstance(wanted, list):
        missing = [each for each in wanted or () if each not in attributes]
        if missing:
            raise _Refusal(_NOT_FOUND, _ATTRIBUTE, f"No such attribute: {missing[0]}")
        return _at(_chosen(attributes, wanted), request.get("path"))
    if wanted not in attributes:
        raise _Refusal(_NOT_FOUND, _ATTRIBUTE, f"No such attribute: {wanted}")
    return _at(attributes[wanted], request.get("path"))


def _chosen(attributes: Mapping[str, object], wanted: Any) -> dict[str, object]:
    if wanted is None or wanted == []:
        return dict(attributes)
    return {name: attributes[name] for name in (wanted if isinstance(wanted, list) else [wanted]) if name in attributes}


def _at(value: Any, path: Any) -> Any:
    """What stands at a path inside a value."""
    for part in _split(str(path)) if path else ():
        if not isinstance(value, dict) or part not in value:
            raise _Refusal(_BAD_REQUEST, _MALFORMED, f"there is nothing at the path {path}")
        value = value[part]
    return value


def _listed(request: Reply) -> ObjectName:
    parts = _split(str(request["path"])) if request.get("path") else []
    if len(parts) > 1:
        return parse(f"{parts[0]}:{parts[1]}")
    return parse(f"{parts[0]}:*") if parts else parse(EVERYTHING)


def _list(request: Reply, find: Find) -> Any:
    domains: dict[str, dict[str, Any]] = {}
    for mbean, attributes in find(_listed(request)).items():
        domain, _, keys = mbean.partition(":")
        described = {name: {"type": _type(value), "desc": name, "rw": False} for name, value in attributes.items()}
        domains.setdefault(domain, {})[keys] = {"attr": described, "desc": "a metric of this broker"}
    parts = _split(str(request["path"])) if request.get("path") else []
    value: Any = domains
    if parts:
        value = _at(value, _escaped(parts[0]))
    if len(parts) > 1:
        (value,) = value.values()
    return _at(value, "/".join(map(_escaped, parts[2:])))


def _type(value: object) -> str:
    if isinstance(value, int):
        return "long"
    return "double" if isinstance(value, float) else "java.lang.String"
