"""A pipeline file as a document: its values, and the line of each, so that messages can point at them.

`*.yaml` is YAML 1.2: `on` and `no` are words, not booleans, and a key that stands twice is refused. `*.py` defines
`pipeline = Pipeline(...)`. For `*.sql` see `sql_files`.
"""

import importlib.util
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import yaml

from ottla.pipelines.errors import InvalidPipeline
from ottla.pipelines.spec import Pipeline
from ottla.pipelines.sql_files import read_sql

FILE_BYTES_MAX = 1 << 20
DEPTH_MAX = 50
VALUES_MAX = 10_000


@dataclass(frozen=True, kw_only=True)
class Document:
    path: Path
    values: Any
    lines: dict[str, int] = field(default_factory=dict)
    """The line of each place, such as `sinks[0].format`."""

    def where(self, place: str) -> str:
        """`line 12, sinks[0].format`, or the nearest place that has a line."""
        known = place
        while known and known not in self.lines:
            known = known[: max(known.rfind("."), known.rfind("["), 0)]
        line = self.lines.get(known)
        return ", ".join(part for part in (f"line {line}" if line else "", place) if part)


def load(path: Path) -> Document:
    """Read a file of any of the three kinds; InvalidPipeline if there is nothing to understand in it."""
    try:
        if path.stat().st_size > FILE_BYTES_MAX:
            raise InvalidPipeline(str(path), [f"a pipeline file has at most {FILE_BYTES_MAX} bytes"])
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise InvalidPipeline(str(path), [f"cannot be read: {error.strerror}"]) from None
    except UnicodeDecodeError:
        raise InvalidPipeline(str(path), ["it is not UTF-8 text"]) from None
    if path.suffix == ".py":
        return _load_python(path)
    if path.suffix == ".sql":
        values, lines = read_sql(path, text, lambda part, first_line: read_yaml(path, part, first_line))
        return Document(path=path, values=values, lines=lines)
    if path.suffix in (".yaml", ".yml"):
        values, lines = read_yaml(path, text)
        return Document(path=path, values=values, lines=lines)
    raise InvalidPipeline(str(path), [f"`{path.suffix}` is not a pipeline file: write .yaml, .sql or .py"])


# YAML.


class _Loader(yaml.SafeLoader):
    """SafeLoader with the plain scalars of YAML 1.2's core schema."""


_Loader.yaml_implicit_resolvers = {}

_PLAIN: tuple[tuple[str, str, str], ...] = (
    ("null", r"~|null|Null|NULL|", "~nN"),
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("int", r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+", "-+0123456789"),
    ("float", r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?", "-+.0123456789"),
)
for _tag, _pattern, _first in _PLAIN:
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(f"^(?:{_pattern})$"), [*_first, ""])


def _whole_number(loader: _Loader, node: yaml.ScalarNode) -> int:
    """As YAML 1.2 has it: 010 is ten."""
    text = str(loader.construct_scalar(node))
    return int(text, 0) if text.startswith(("0o", "0x")) else int(text)


_Loader.add_constructor("tag:yaml.org,2002:int", _whole_number)


def read_yaml(path: Path, text: str, first_line: int = 1) -> tuple[Any, dict[str, int]]:
    """The values and the line of each place."""
    loader: _Loader | None = None
    try:
        loader = _Loader(text)
        node = loader.get_single_node()
        if node is None:
            raise InvalidPipeline(str(path), ["it is empty; `ottla pipeline --help` shows an example"])
        lines: dict[str, int] = {}
        problems = list(_walk(node, "", lines, first_line, 0))
        if problems:
            raise InvalidPipeline(str(path), problems)
        values = loader.construct_document(node)
    except yaml.YAMLError as error:
        raise InvalidPipeline(str(path), [_in_words(error, first_line)]) from None
    except ValueError as error:  # a plain scalar such as a number with thousands of digits
        raise InvalidPipeline(str(path), [f"a value cannot be read: {error}"]) from None
    finally:
        if loader is not None:
            loader.dispose()
    return values, lines


def _walk(node: yaml.Node, place: str, lines: dict[str, int], first_line: int, depth: int) -> Iterator[str]:
    """Note where everything stands; yields what YAML itself would let pass and we do not."""
    lines[place] = node.start_mark.line + first_line
    if len(lines) > VALUES_MAX:  # aliases can make a few lines endless
        if len(lines) == VALUES_MAX + 1:
            yield f"line {lines[place]}: more than {VALUES_MAX} values"
    elif depth > DEPTH_MAX:
        yield f"line {lines[place]}: nested deeper than {DEPTH_MAX}"
    elif isinstance(node, yaml.MappingNode):
        seen: set[str] = set()
        for key, value in node.value:
            line = key.start_mark.line + first_line
            if not isinstance(key, yaml.ScalarNode):
                yield f"line {line}: a key must be a word"
                continue
            name = str(key.value)
            here = f"{place}.{name}" if place else name
            if name in seen:
                yield f"line {line}, {here}: this key stands here twice"
            seen.add(name)
            yield from _walk(value, here, lines, first_line, depth + 1)
            lines[here] = line
            key.tag = "tag:yaml.org,2002:str"  # `1: x` and `null: x` are keys as they are written
    elif isinstance(node, yaml.SequenceNode):
        for number, item in enumerate(node.value):
            yield from _walk(item, f"{place}[{number}]", lines, first_line, depth + 1)


def _in_words(error: yaml.YAMLError, first_line: int) -> str:
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        context = f" ({error.context})" if error.context else ""
        return f"line {error.problem_mark.line + first_line}: this is not YAML: {error.problem}{context}"
    return f"this is not YAML: {error}"


# Python.


def _load_python(path: Path) -> Document:
    found = run_file(path, lambda module: getattr(module, "pipeline", None))
    if not isinstance(found, Pipeline):
        what = "defines no `pipeline`" if found is None else f"`pipeline` is a {type(found).__name__}"
        raise InvalidPipeline(str(path), [f"{what}; write `pipeline = Pipeline(name=..., sources=..., sinks=...)`"])
    return Document(path=path, values=_without_defaults(msgspec.to_builtins(found)))


def run_file(path: Path, take: Callable[[Any], Any]) -> Any:
    """Run a Python file with its own folder importable, and take something from it."""
    spec = importlib.util.spec_from_file_location(f"ottla_pipeline_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    folder = str(path.resolve().parent)
    sys.path.insert(0, folder)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise InvalidPipeline(str(path), [f"cannot be run: {type(error).__name__}: {error}"]) from error
    finally:
        sys.path.remove(folder)
    return take(module)


def _without_defaults(values: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value not in (None, "", [], {})}
