"""The OpenAPI description of what is below /api, made from the table of routes. Pure."""

import re
from collections.abc import Sequence
from typing import Any

from ottla.console.asking import Right

_PART = re.compile(r"\{(\w+)(?::\w+)?\}")


def description(entries: Sequence[Any], version: str, clusters: Sequence[str]) -> dict[str, Any]:
    """`entries` are those of the table; streams and files of bytes are not part of the API."""
    paths: dict[str, dict[str, Any]] = {}
    for entry in entries:
        if entry.raw:
            continue
        path = _PART.sub(r"{\1}", f"/api/c/{{cluster}}{entry.path}")
        paths.setdefault(path, {})[entry.method.lower()] = _operation(entry, clusters)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Ottla console",
            "version": version,
            "description": "What the pages show and do, as JSON. Changes want a token: see docs/console.md.",
        },
        "paths": paths,
        "components": {
            "schemas": {"Error": {"type": "object", "properties": {"error": {"type": "string"}}, "required": ["error"]}}
        },
    }


def _operation(entry: Any, clusters: Sequence[str]) -> dict[str, Any]:
    parameters = [
        {
            "name": name,
            "in": "path",
            "required": True,
            "schema": {"type": "string", **({"enum": list(clusters)} if name == "cluster" else {})},
        }
        for name in ["cluster", *_PART.findall(entry.path)]
    ]
    operation: dict[str, Any] = {
        "summary": entry.summary,
        "operationId": f"{entry.method.lower()}{re.sub(r'[^A-Za-z0-9]+', '_', entry.path)}".rstrip("_"),
        "parameters": parameters,
        "x-right": Right(entry.right).name.lower(),
        "responses": {
            "200": {"description": "What was asked for, or what was done", "content": {"application/json": {}}},
            "default": {
                "description": "Why not, in words",
                "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}},
            },
        },
    }
    if entry.method == "GET":
        parameters += [{"name": name, "in": "query", "schema": {"type": "string"}} for name in entry.fields]
    else:
        fields = {name: {"type": ["string", "number", "boolean", "array"]} for name in entry.fields}
        schema = {"type": "object", "properties": fields}
        operation["requestBody"] = {"content": {"application/json": {"schema": schema}}}
    return operation
