"""House rules that a program can check: how long files and functions may be, what is pure, how loggers are called."""

import ast
import functools
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "src"

FILE_LINES_MAX = 500
FUNCTION_LINES_MAX = 70

LONG_FILES: dict[str, int] = {}
"""Those that were longer when the rule came, and how long they may be. Entries may shrink or go; none is added."""
LONG_FUNCTIONS: dict[str, int] = {}
"""By `file:function`; as above."""

LOG_METHODS = {"debug", "info", "warning", "error", "exception", "critical", "log"}

PURE = re.compile(r"\b[Pp]ure\b")
PURE_IN_PART = {
    "ottla.broker.controller": "names the pure modules among its own",
    "ottla.broker.coordination": "its machines are pure, its runtimes are not",
    "ottla.cli.admin.reassignment_progress": "compares purely what it has asked for before",
}


@functools.cache
def modules() -> list[tuple[str, str, ast.Module]]:
    """(path below src, text, parsed) of every module."""
    found = [(path, path.read_text()) for path in sorted(SOURCES.rglob("*.py"))]
    return [(path.relative_to(SOURCES).as_posix(), text, ast.parse(text)) for path, text in found]


def functions(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """(name, lines) of every function and method, with those of inner ones counted in."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert node.end_lineno is not None
            yield node.name, node.end_lineno - node.lineno + 1


def broken(found: dict[str, int], limit: int, exceptions: dict[str, int]) -> list[str]:
    """What is too long, and which exceptions have grown or are not needed any more."""
    told = []
    for name, lines in found.items():
        allowed = exceptions.get(name, limit)
        if lines > allowed:
            told.append(f"{name} has {lines} lines, more than {allowed}: divide it")
        elif name in exceptions and lines <= limit:
            told.append(f"{name} has {lines} lines and needs no exception: take it out of the table")
    return told + [f"{name} does not exist: take it out of the table" for name in exceptions.keys() - found.keys()]


def test_files_are_short() -> None:
    found = {name: len(text.splitlines()) for name, text, _ in modules()}
    assert not broken(found, FILE_LINES_MAX, LONG_FILES)


def test_functions_are_short() -> None:
    found: dict[str, int] = {}
    for name, _, tree in modules():
        for function, lines in functions(tree):
            key = f"{name}:{function}"
            found[key] = max(lines, found.get(key, 0))
    assert len(found) > 1000, "the rule looks at the sources"
    assert not broken(found, FUNCTION_LINES_MAX, LONG_FUNCTIONS)


def test_the_rule_notices_what_it_should() -> None:
    table = {"long": 12, "shrunk": 12, "grown": 12, "gone": 12}
    told = broken({"short": 10, "long": 12, "shrunk": 10, "grown": 13, "new": 11}, 10, table)
    assert sorted(line.split()[0] for line in told) == ["gone", "grown", "new", "shrunk"]


def test_a_modules_logger_is_called_logger() -> None:
    """`log` is a partition's."""
    otherwise = set()
    for name, _, tree in modules():
        for node in tree.body:
            if isinstance(node, ast.Assign) and ast.unparse(node.value) == "logging.getLogger(__name__)":
                (target,) = node.targets
                if ast.unparse(target) != "logger":
                    otherwise.add(name)
    assert not otherwise


def log_lines(tree: ast.Module) -> Iterator[str]:
    """What a module logs, where the text stands in the call."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        if ast.unparse(node.func.value) != "logger" or node.func.attr not in LOG_METHODS:
            continue
        text = node.args[1 if node.func.attr == "log" else 0]
        if isinstance(text, ast.Constant) and isinstance(text.value, str):
            yield text.value


def begins_well(line: str) -> bool:
    """`Shrinking ISR ...`, or first what it is about: `%s-%d: Cannot ...`, `transactional.id %s: Cannot ...`."""
    said = re.sub(r"^[a-z.]*( ?%[a-z](-%d)?)+: ", "", line)
    return said[:1].isupper() or said.startswith("%")


def test_log_lines_begin_with_a_capital() -> None:
    """Like Kafka's own, which operators grep for; the thing that a line is about stands before it, with a colon."""
    said = {(name, line) for name, _, tree in modules() for line in log_lines(tree)}
    assert len(said) > 80, "the rule looks at the log lines"
    assert not {(name, line) for name, line in said if not begins_well(line)}
    assert begins_well("%s-%d: Cannot go on")
    assert begins_well("transactional.id %s: Aborted")
    assert not begins_well("cannot go on")
    assert not begins_well("%s-%d: cannot go on")


def test_what_claims_to_be_pure_is_under_the_contract() -> None:
    """import-linter then sees to it that it imports no clock, no I/O and no randomness."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    kept = {
        module
        for each in contracts
        if each["name"].startswith("Decisions do no I/O")
        for module in each["source_modules"]
    }
    claims = {
        name.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        for name, _, tree in modules()
        if PURE.search(ast.get_docstring(tree) or "")
    }
    outside = {claim for claim in claims if not any(f"{claim}.".startswith(f"{module}.") for module in kept)}
    assert outside == PURE_IN_PART.keys(), "put it under the contract in pyproject.toml, or say what it really is"


ONE_PLACE = {
    "BOOTSTRAP_VARIABLE", "DEFAULT_BOOTSTRAP", "MAX_TIMESTAMP", "NO_BROKER_EPOCH", "NO_EPOCH", "NO_FETCH_SESSION",
    "NO_LEADER", "NO_OFFSET", "NO_PRODUCER_ID", "NO_SEQUENCE", "NO_TIMESTAMP", "READ_COMMITTED",
}  # fmt: skip


def test_what_says_none_and_where_brokers_are_is_defined_once() -> None:
    """ottla.model.sentinels and ottla.model.defaults have them, or whoever is lowest among those who need them."""
    places: dict[str, set[str]] = {}
    for name, _, tree in modules():
        for node in tree.body:
            if isinstance(node, ast.Assign) and (constant := ast.unparse(node.targets[0])) in ONE_PLACE:
                places.setdefault(constant, set()).add(name)
    assert places.keys() == ONE_PLACE, "the rule looks at the constants"
    assert not {constant: files for constant, files in places.items() if len(files) > 1}
