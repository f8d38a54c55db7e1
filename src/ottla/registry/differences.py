"""What is different between two schemas, in lines that people read. Pure."""

import difflib
import json
from collections.abc import Iterator
from typing import Any


def differences(schema_type: str, old: str, new: str) -> list[str]:
    """`+` is new, `-` is gone, `~` has changed."""
    if schema_type == "PROTOBUF":
        lines = difflib.unified_diff(old.splitlines(), new.splitlines(), "old", "new", lineterm="", n=2)
        return [line for line in lines if not line.startswith(("---", "+++"))]
    return list(_compare(json.loads(old), json.loads(new), ""))


def _compare(old: Any, new: Any, path: str) -> Iterator[str]:
    if old == new:
        return
    if isinstance(old, dict) and isinstance(new, dict):
        for key in dict.fromkeys([*old, *new]):
            inside = f"{path}.{key}" if path else key
            if key not in old:
                yield f"+ {inside}: {_shown(new[key])}"
            elif key not in new:
                yield f"- {inside}: {_shown(old[key])}"
            else:
                yield from _compare(old[key], new[key], inside)
    elif _are_named(old) and _are_named(new):
        before, now = {each["name"]: each for each in old}, {each["name"]: each for each in new}
        for name in dict.fromkeys([*before, *now]):
            inside = f"{path}[{name}]"
            if name not in before:
                yield f"+ {inside}: {_shown(now[name])}"
            elif name not in now:
                yield f"- {inside}: {_shown(before[name])}"
            else:
                yield from _compare(before[name], now[name], inside)
        if list(before) != [name for name in now if name in before] and before.keys() <= now.keys():
            yield f"~ {path}: in another order"
    else:
        yield f"~ {path or 'the schema'}: {_shown(old)} → {_shown(new)}"


def _are_named(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(each, dict) and "name" in each for each in value)


def _shown(value: Any) -> str:
    if (
        isinstance(value, dict)
        and set(value) <= {"name", "type", "default", "doc"}
        and isinstance(value.get("type"), str)
    ):
        default = f" = {json.dumps(value['default'], ensure_ascii=False)}" if "default" in value else ""
        return f"{value['type']}{default}"
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 200 else f"{text[:200]}…"
