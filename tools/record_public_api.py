"""Write down what other people's code relies on, so that a change of it is seen in review: docs/public-api.txt.

docs/api.md says in words what is public. Run this after changing any of it on purpose, and tell users in CHANGELOG.md.
A test fails while the record is not what this program writes. Signatures are read from the source, not from imported
objects, so that the record is the same with every version of Python.
"""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from ottla.cli.names import COMMANDS
from ottla.pipelines.connectors.registry import SINKS, SOURCES
from ottla.pipelines.steps.registry import STEPS

ROOT = Path(__file__).parent.parent
TARGET = ROOT / "docs" / "public-api.txt"

PUBLIC: dict[str, tuple[str, ...]] = {
    "ottla.model.errors": ("OttlaError",),
    "ottla.testing": ("BrokerDidNotStart", "RunningBroker", "broker"),
    "ottla.testing.plugin": ("ottla_broker", "ottla_fresh_broker", "ottla_cluster", "ottla_broker_settings"),
    "ottla.testing.cluster": ("RunningCluster", "cluster"),
    "ottla.testing.zookeeper": ("ZooKeeperDidNotStart", "ZooKeeperEnsemble", "ZooKeeperMember", "zookeeper"),
    "ottla.testing.links": ("Links",),
    "ottla.testing.load": ("LoadProducer", "read_log"),
    "ottla.testing.ledger": ("Audit", "Ledger", "Stamp", "audit"),
    "ottla.spark.session": ("SparkDidNotStart", "build_session"),
    "ottla.spark.formats.api": ("Parsed", "from_format", "to_format"),
    "ottla.pipelines.spec": ("Case", "Errors", "Limits", "Phase", "Pipeline"),
    "ottla.pipelines.errors": ("BadRecord", "ConnectorProblem", "FatalFailure", "InvalidPipeline", "PipelineError"),
    "ottla.pipelines.connectors.base": ("Batch", "NamesFiles", "RECORD", "Sink", "Source", "SourceContext", "Written"),
    "ottla.pipelines.steps.base": ("INPUT", "Step", "StepContext"),
    "ottla.pipelines.frames": ("ORIGIN", "REJECTED"),
}
"""Modules and their names that may be imported by code outside of this project."""


def render() -> str:
    lines = ["Written by tools/record_public_api.py; docs/api.md says what this is."]
    for module, names in PUBLIC.items():
        lines += ["", module]
        for name in names:
            lines += [f"  {line}" for line in _definition(module, name)]
    for title, registry in (("sources", SOURCES), ("sinks", SINKS), ("steps", STEPS)):
        lines += ["", f"{title} of pipeline files, with their options"]
        lines += [f"  {kind}: {_options(registry.get(kind))}" for kind in registry.kinds()]
    lines += ["", "commands, and what they are called in Kafka"]
    lines += [f"  ottla {each.name}" + (f", {each.script}[.sh]" if each.script else "") for each in COMMANDS]
    return "\n".join(lines) + "\n"


def _definition(module: str, name: str) -> list[str]:
    """Where a name is imported from elsewhere, what it is there."""
    for node in _tree(module).body:
        if isinstance(node, ast.ImportFrom) and node.module and any(alias.name == name for alias in node.names):
            return _definition(node.module, name)
        if isinstance(node, ast.ClassDef) and node.name == name:
            return _class(node)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == name:
            return [_function(node)]
        if isinstance(node, ast.AnnAssign | ast.Assign) and name in _targets(node):
            return [ast.unparse(node)]
    raise LookupError(f"{module} has no {name}, which docs/api.md promises")


def _tree(module: str) -> ast.Module:
    path = ROOT / "src" / module.replace(".", "/")
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    return ast.parse(file.read_text())


def _targets(node: ast.AnnAssign | ast.Assign) -> list[str]:
    targets = [node.target] if isinstance(node, ast.AnnAssign) else node.targets
    return [target.id for target in targets if isinstance(target, ast.Name)]


def _class(node: ast.ClassDef) -> list[str]:
    bases = ", ".join(ast.unparse(base) for base in [*node.bases, *node.keywords])
    return [f"class {node.name}({bases})" if bases else f"class {node.name}", *(f"  {part}" for part in _members(node))]


def _members(node: ast.ClassDef) -> Iterator[str]:
    """Fields and methods without a leading underscore, and what the constructor takes and keeps."""
    for part in node.body:
        if isinstance(part, ast.AnnAssign | ast.Assign) and not all(name.startswith("_") for name in _targets(part)):
            yield ast.unparse(part)
        if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef):
            if part.name == "__init__":
                yield _function(part)
                yield from _kept(part)
            elif not part.name.startswith("_"):
                decorators = {ast.unparse(decorator) for decorator in part.decorator_list}
                mark = "@property " if "property" in decorators else ""
                yield mark + _function(part)


def _kept(init: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[str]:
    """Attributes that a constructor sets and that do not begin with an underscore."""
    for node in ast.walk(init):
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        for target in targets:
            if isinstance(target, ast.Attribute) and ast.unparse(target.value) == "self" and target.attr[0] != "_":
                yield f"self.{target.attr}"


def _function(node: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    word = "async def" if isinstance(node, ast.AsyncFunctionDef) else "def"
    # The same annotation with and without quotes is the same.
    answer = f" -> {ast.unparse(node.returns).strip(chr(39))}" if node.returns else ""
    return f"{word} {node.name}({ast.unparse(node.args)}){answer}"


def _options(part: Any) -> str:
    """`name` where it must be given, `name=default` else."""
    fields = msgspec.structs.fields(part.Options)
    return ", ".join(each.encode_name if each.required else f"{each.encode_name}={_default(each)}" for each in fields)


def _default(field: msgspec.structs.FieldInfo) -> str:
    if field.default_factory is not msgspec.NODEFAULT:
        return repr(field.default_factory())
    return repr(field.default)


def main() -> int:
    TARGET.write_text(render())
    print(f"wrote {TARGET.relative_to(ROOT)}: if it differs, tell users in CHANGELOG.md")
    return 0


if __name__ == "__main__":
    sys.exit(main())
