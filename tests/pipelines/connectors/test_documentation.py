"""The page of connectors: its tables are those of the options, and each of its pipelines runs."""

import importlib.util
import json
import re
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec
import psycopg
import pyarrow.dataset as ds
import pytest
from tests.pipelines.world import World

from ottla.pipelines.connectors.objects.store import S3Access, file_system
from ottla.pipelines.connectors.options import ConnectorOptions
from ottla.pipelines.connectors.registry import SINKS, SOURCES

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs/connectors.md").read_text()
EXAMPLES = {
    text.splitlines()[0].removeprefix("name: "): text for text in re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
}


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("connector_docs", ROOT / "tools/generate_connector_docs.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_tables_are_current(tool: ModuleType) -> None:
    assert tool.render(PAGE) == PAGE, "run make docs"
    for role in ("source", "sink"):
        for kind in tool.described(role):
            assert f"<!-- options of {kind} as {role} -->" in PAGE


def test_all_options_refuse_what_they_do_not_know_and_hide_secrets() -> None:
    for registry in (SOURCES, SINKS):
        for kind in [kind for kind in registry.kinds() if kind != "topic"]:
            options: Any = registry.get(kind).Options
            assert issubclass(options, ConnectorOptions), kind
            with pytest.raises(msgspec.ValidationError, match=r"unknown field|missing required"):
                msgspec.convert({"no such option": 1}, options)
            for field in msgspec.structs.fields(options):
                if any(word in field.name for word in ("password", "secret", "access_key", "token")):
                    shown = repr(msgspec.structs.replace(_smallest(kind, options), **{field.name: "geheim"}))
                    assert "geheim" not in shown, (kind, field.name)


def _smallest(kind: str, options: Any) -> Any:
    given: dict[str, Any] = {field.name: "x" for field in msgspec.structs.fields(options) if field.required}
    return msgspec.convert(given if kind != "generate" else {"generate": {}}, options)


@pytest.fixture
def run(world: World) -> Callable[[str], World]:
    def once(name: str) -> World:
        path = world.folder / f"{name}.yaml"
        path.write_text(EXAMPLES[name])
        world.run_once(path)
        return world

    return once


def test_csv_to_lake(world: World, run: Callable[[str], World]) -> None:
    (world.folder / "incoming").mkdir()
    (world.folder / "incoming" / "a.csv").write_text("id,item,amount\n1,book,2.5\n2,pen,-1\n")
    run("csv-to-lake")
    rows = ds.dataset(world.folder / "lake", partitioning="hive").to_table().to_pylist()
    assert [(row["id"], row["item"], row["amount"]) for row in rows] == [(1, "book", 2.5)]


def test_errors_of_a_log(world: World, run: Callable[[str], World]) -> None:
    log = world.folder / "app.log"
    log.write_text("INFO a\nERROR b\nERROR c")
    run("errors-of-a-log")
    assert (world.folder / "errors.log").read_text() == "ERROR b\n"
    log.write_text(log.read_text() + "\n")
    run("errors-of-a-log")
    assert (world.folder / "errors.log").read_text() == "ERROR b\nERROR c\n"


def test_orders_to_s3(
    world: World,
    run: Callable[[str], World],
    access: dict[str, Any],
    make_bucket: Callable[[str], str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    make_bucket("lake")
    for name, key in (("ENDPOINT", "endpoint"), ("ACCESS_KEY", "access_key"), ("SECRET_KEY", "secret_key")):
        monkeypatch.setenv(f"S3_{name}", access[key])
    (world.folder / "incoming").mkdir()
    (world.folder / "incoming" / "a.jsonl").write_text('{"id": 1, "item": "book"}\n')
    run("orders-to-s3")
    found = ds.dataset("lake/orders", filesystem=file_system(S3Access(**access))).to_table().to_pylist()
    assert found == [{"id": 1, "item": "book"}]


def test_totals_by_customer(
    world: World, run: Callable[[str], World], postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("CREATE TABLE orders (id serial, customer text, amount float8)")
        connection.execute("INSERT INTO orders (customer, amount) VALUES ('ann', 1.5), ('bob', -1)")
        monkeypatch.setenv("SHOP_DB", postgres_url)
        run("totals-by-customer")
        assert connection.execute("SELECT * FROM paid").fetchall() == [(1, "ann", 1.5)]
        connection.execute("INSERT INTO orders (customer, amount) VALUES ('cleo', 2)")
        run("totals-by-customer")
        assert connection.execute("SELECT count(*) FROM paid").fetchall() == [(2,)]


def test_sqlite_copy(world: World, run: Callable[[str], World]) -> None:
    with closing(sqlite3.connect(world.folder / "app.db")) as connection, connection:
        connection.execute("CREATE TABLE events (id INTEGER PRIMARY KEY, what TEXT)")
        connection.execute("INSERT INTO events VALUES (1, 'login'), (2, 'logout')")
    run("sqlite-copy")
    with closing(sqlite3.connect(world.folder / "copy.db")) as connection:
        assert connection.execute("SELECT * FROM events").fetchall() == [(1, "login"), (2, "logout")]


def test_generated_orders(world: World, run: Callable[[str], World], capsys: pytest.CaptureFixture[str]) -> None:
    run("generated-orders")
    assert "generated-orders, batch 0: the first 5 rows" in capsys.readouterr().out
    lines = [line for path in (world.folder / "generated").iterdir() for line in path.read_text().splitlines()]
    assert len(lines) == 100
    assert {json.loads(line)["item"] for line in lines} == {"book", "pen", "lamp"}


def test_every_example_has_a_test() -> None:
    tested = {name.removeprefix("test_").replace("_", "-") for name in globals() if name.startswith("test_")}
    assert set(EXAMPLES) <= tested
