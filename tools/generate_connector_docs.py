"""Writes the tables of options in docs/connectors.md from the connectors' own structs; the words around them stay."""

import re
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

import msgspec

from ottla.pipelines.connectors.registry import SINKS, SOURCES

TARGET = Path(__file__).parent.parent / "docs" / "connectors.md"
_BLOCK = re.compile(
    r"(?P<begin><!-- options of (?P<kind>\w+) as (?P<role>source|sink) -->\n).*?(?=<!-- end -->)", re.DOTALL
)


def described(role: str) -> list[str]:
    """The kinds whose options are in the page."""
    return (SOURCES if role == "source" else SINKS).kinds()


def table(role: str, kind: str) -> str:
    part: Any = (SOURCES if role == "source" else SINKS).get(kind)
    hints = get_type_hints(part.Options, include_extras=True)
    lines = ["| option | type | default | what it does |", "|---|---|---|---|"]
    for field in msgspec.structs.fields(part.Options):
        hint = hints[field.name]
        default = "required" if field.required else _value(field.default)
        lines.append(f"| `{field.name}` | {_type(hint)} | {default} | {_description(hint)} |")
    return "\n".join(lines) + "\n"


def _description(hint: Any) -> str:
    texts = [meta.description for meta in getattr(hint, "__metadata__", ()) if getattr(meta, "description", None)]
    return str(texts[-1])


def _value(value: Any) -> str:
    if value is None or value == () or value is msgspec.NODEFAULT:
        return ""
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


_WORDS = {str: "text", int: "whole number", float: "number", bool: "true or false", type(None): ""}


def _type(hint: Any) -> str:
    if hasattr(hint, "__metadata__"):
        return _type(get_args(hint)[0])
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Literal:
        return ", ".join(f"`{value}`" for value in arguments)
    if origin in (tuple, list):
        return "list"
    if origin is dict:
        return "mapping"
    if arguments:
        return " or ".join(filter(None, (_type(argument) for argument in arguments)))
    return _WORDS.get(hint, "mapping")


def render(page: str) -> str:
    return _BLOCK.sub(lambda block: block["begin"] + table(block["role"], block["kind"]), page)


if __name__ == "__main__":
    TARGET.write_text(render(TARGET.read_text()))
