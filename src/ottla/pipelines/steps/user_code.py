"""Code of the person who wrote the pipeline: found beside its file, and sent to the executors with the step.

Modules beside a pipeline file are loaded for that pipeline alone, so two pipelines in one driver may both have an
`enrich.py`; and they are sent by value, so no executor needs the folder. Modules that are installed are imported as
usual and must be installed on the executors too.
"""

import ast
import hashlib
import importlib
import importlib.util
import re
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Any

from pyspark import cloudpickle

from ottla.pipelines.errors import FatalFailure

_importing = threading.Lock()
_ROWS = re.compile(r"['\"]?(dict|Mapping|([\w.]+\.)?(RecordBatch|Table))(\[.*\])?['\"]?")


def reference_problems(reference: str, what: str) -> list[str]:
    module, colon, name = reference.partition(":")
    if colon and module and name.isidentifier() and all(part.isidentifier() for part in module.split(".")):
        return []
    return [f"`{reference}` names no {what}: write module:{what}, for instance `enrich:add_country`"]


def load(reference: str, base_dir: Path, label: str) -> Any:
    """What `module:name` stands for."""
    module_name, _, name = reference.partition(":")
    try:
        module = _import_beside(module_name, base_dir)
    except Exception as error:  # whatever the user's module raises while it is imported
        raise FatalFailure(f"step {label}: cannot import `{module_name}`: {explain(error)}") from error
    try:
        return getattr(module, name)
    except AttributeError as missing:
        raise FatalFailure(f"step {label}: `{module_name}` has no `{name}`") from missing


def takes_rows(reference: str, base_dir: Path) -> bool:
    """Whether a function is known to take rows or Arrow batches, and not a frame. It is read, not run: a module that is
    not beside the pipeline, or whose annotation says nothing certain, is no reason to import it yet."""
    module, _, name = reference.partition(":")
    beside = base_dir.joinpath(*module.split("."))
    path = next((path for path in (beside.with_suffix(".py"), beside / "__init__.py") if path.is_file()), None)
    if path is None:
        return False
    try:
        tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError, OSError):
        return False  # it is told when the step is made
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name == name:
            parameters = [*node.args.posonlyargs, *node.args.args]
            wanted = parameters[0].annotation if parameters else None
            return bool(parameters) and (wanted is None or bool(_ROWS.fullmatch(ast.unparse(wanted))))
    return False


def _import_beside(name: str, base_dir: Path) -> ModuleType:
    """Import with the pipeline's folder first, then forget what came from it: cloudpickle takes by value what cannot be
    imported by name, and the next pipeline's modules of the same name must not find these."""
    with _importing:
        ours = _names_in(base_dir)
        hidden = {loaded: sys.modules.pop(loaded) for loaded in list(sys.modules) if loaded.partition(".")[0] in ours}
        sys.path.insert(0, str(base_dir))
        importlib.invalidate_caches()
        try:
            return importlib.import_module(name)
        finally:
            sys.path.remove(str(base_dir))
            for loaded in [loaded for loaded in sys.modules if loaded.partition(".")[0] in ours]:
                del sys.modules[loaded]
            sys.modules.update(hidden)


def _names_in(base_dir: Path) -> frozenset[str]:
    files = {path.stem for path in base_dir.glob("*.py")}
    packages = {path.parent.name for path in base_dir.glob("*/__init__.py")}
    return frozenset(files | packages) - sys.stdlib_module_names - {"ottla"}


@dataclass(frozen=True)
class Shipped:
    """A function on its way to the executors. There it is unpacked once per worker, so what it keeps in its module
    (a cache, a model) lives as long as the worker."""

    payload: bytes
    digest: str

    @classmethod
    def pack(cls, function: Any, label: str) -> "Shipped":
        try:
            payload: bytes = cloudpickle.dumps(function)  # type: ignore[no-untyped-call]
        except Exception as error:  # pickling runs whatever the objects define
            raise FatalFailure(
                f"step {label}: the function cannot be sent to the executors: {error}. "
                "Make connections, locks and open files inside the function, not when its module is imported"
            ) from error
        return cls(payload, hashlib.sha256(payload).hexdigest())

    def unpack(self) -> Any:
        if self.digest not in _unpacked:
            _unpacked[self.digest] = cloudpickle.loads(self.payload)
        return _unpacked[self.digest]


# A worker process lives for many tasks; see Shipped.
_unpacked: dict[str, Any] = {}


def explain(error: BaseException) -> str:
    """The exception in one line, with the line of the user's code that raised it."""
    text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    place = _innermost(error.__traceback__)
    return f"{text} ({place})" if place else text


def _innermost(traceback: TracebackType | None) -> str | None:
    """The last place in the traceback that is not inside Python's or an installed library."""
    place = None
    while traceback is not None:
        code = traceback.tb_frame.f_code
        path = Path(code.co_filename)
        if "site-packages" not in path.parts and "importlib" not in code.co_filename and path != Path(__file__):
            place = f"{path.name}, line {traceback.tb_lineno}, in {code.co_name}"
        traceback = traceback.tb_next
    return place
