"""`ottla schema` and the console tools for values with a schema, as people call them."""

import io
import json
import sys
from pathlib import Path

import pytest

from ottla.cli.main import main
from ottla.registry.client import RegistryClient
from ottla.testing.registry import RunningRegistry, registry
from ottla.testing.running import RunningBroker

ORDER = '{"type":"record","name":"Order","fields":[{"name":"id","type":"int"}]}'
NEWER = ORDER.replace("}]}", '},{"name":"note","type":["null","string"],"default":null}]}')
WORSE = ORDER.replace("}]}", '},{"name":"note","type":"string"}]}')


class Tool:
    def __init__(self, url: str, capsys: pytest.CaptureFixture[str]) -> None:
        self._url = url
        self._capsys = capsys

    def __call__(self, *arguments: str) -> tuple[int, str]:
        self._capsys.readouterr()
        code = main(["schema", "--registry", self._url, *arguments])
        said = self._capsys.readouterr()
        return code, said.out + said.err


@pytest.fixture
def tool(registry_process: RunningRegistry, capsys: pytest.CaptureFixture[str]) -> Tool:
    return Tool(registry_process.url, capsys)


def test_from_the_first_version_to_a_refused_one(tool: Tool, tmp_path: Path, subject: str) -> None:
    files = {name: tmp_path / f"{name}.avsc" for name in ("order", "newer", "worse")}
    for name, text in (("order", ORDER), ("newer", NEWER), ("worse", WORSE)):
        files[name].write_text(text)
    assert tool("register", subject, str(files["order"]))[1].startswith(f"{subject} version 1, id ")
    assert tool("check", subject, str(files["newer"])) == (0, "compatible\n")
    code, said = tool("check", subject, str(files["worse"]))
    assert code == 1
    assert "field note of record Order has no default" in said
    assert "compared with version 1" in said
    code, said = tool("register", subject, str(files["worse"]))
    assert code == 1
    assert "give it a default" in said
    assert tool("register", subject, str(files["newer"]))[0] == 0
    assert (
        '+ fields[note]: {"name": "note", "type": ["null", "string"], "default": null}'
        in tool("diff", subject, "1", "2")[1]
    )
    assert "~ fields" not in tool("diff", subject, "1")[1]
    assert f"{subject}  1, 2" in tool("list", subject)[1]
    assert json.loads(tool("get", subject, "--version", "1")[1]) == json.loads(ORDER)
    assert tool("set-compatibility", "none", "--subject", subject) == (0, f"{subject}: NONE\n")
    assert tool("register", subject, str(files["worse"]))[0] == 0
    assert tool("delete", subject, "--version", "3", "--permanent")[0] == 0
    assert f"{subject}  1, 2" in tool("list", subject, "--deleted")[1]
    assert tool("delete", subject)[0] == 0
    code, said = tool("get", subject)
    assert code == 1
    assert "40401" in said


def test_protobuf_with_a_reference(tool: Tool, tmp_path: Path, subject: str) -> None:
    item, order = tmp_path / "item.proto", tmp_path / "order.proto"
    item.write_text('syntax = "proto3"; message Item { int32 id = 1; }')
    order.write_text('syntax = "proto3"; import "item.proto"; message Order { Item item = 1; }')
    assert tool("register", f"{subject}-item", str(item))[0] == 0
    assert tool("register", subject, str(order), "--reference", f"item.proto={subject}-item:1")[0] == 0
    assert tool("register", f"{subject}-b", str(order))[0] == 1
    order.write_text('syntax = "proto3"; import "item.proto"; message Order { Item item = 1; int32 n = 2; }')
    assert "+" in tool("diff", subject, "1", str(order))[1]


def test_without_a_registry(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema", "--registry", "http://127.0.0.1:9", "list"]) == 1
    assert "ottla registry" in capsys.readouterr().err


def test_export_and_import(
    ottla_fresh_broker: RunningBroker, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Into another registry, with the same ids."""
    with registry(ottla_fresh_broker.bootstrap, "--topic", "_one", "--group", "one") as one:
        with RegistryClient(one.url) as client:
            client.register("a", '"int"')
            client.register("b", '"string"')
            client.register("a", '"long"')
            client.call("DELETE", "/subjects/b")
            client.call("DELETE", "/subjects/b", {"permanent": "true"})
        assert main(["schema", "--registry", one.url, "export"]) == 0
        exported = tmp_path / "exported"
        exported.write_text(capsys.readouterr().out)
    with registry(ottla_fresh_broker.bootstrap, "--topic", "_other", "--group", "other") as other:
        assert main(["schema", "--registry", other.url, "import", str(exported)]) == 0
        with RegistryClient(other.url) as client:
            assert [client.version("a", number).schema_id for number in (1, 2)] == [1, 3]
            assert client.get("/mode") == {"mode": "READWRITE"}
            assert client.register("c", '"bytes"').schema_id == 4


CONSOLES = {
    "avro": (ORDER, '{"id":7}'),
    "json-schema": ('{"type":"object","properties":{"id":{"type":"integer"}}}', '{"id":7}'),
    "protobuf": ('syntax = "proto3"; message Order { int32 id = 1; }', '{"id": 7}'),
}


@pytest.mark.parametrize("kind", CONSOLES)
def test_consoles(
    kind: str,
    ottla_broker: RunningBroker,
    registry_process: RunningRegistry,
    capfdbinary: pytest.CaptureFixture[bytes],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    schema, line = CONSOLES[kind]
    lines = tmp_path / "lines"
    lines.write_text(f"{line}\n{line}\n")
    common = ["--bootstrap-server", ottla_broker.bootstrap, "--topic", f"console-{kind}"]
    common += ["--property", f"schema.registry.url={registry_process.url}"]
    with lines.open() as source:
        monkeypatch.setattr(sys, "stdin", source)
        assert main([f"{kind}-console-producer", *common, "--property", f"value.schema={schema}"]) == 0
    assert main([f"{kind}-console-consumer", *common, "--from-beginning", "--max-messages", "2"]) == 0
    out, _ = capfdbinary.readouterr()
    assert out.decode().splitlines() == [line, line]


def test_a_line_that_is_not_of_the_schema(
    ottla_broker: RunningBroker,
    registry_process: RunningRegistry,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    source = io.TextIOWrapper(io.BytesIO(b'{"id":"seven"}\n'))
    monkeypatch.setattr(sys, "stdin", source)
    common = ["--bootstrap-server", ottla_broker.bootstrap, "--topic", "console-wrong"]
    common += ["--property", f"schema.registry.url={registry_process.url}", "--property", f"value.schema={ORDER}"]
    assert main(["avro-console-producer", *common]) == 1
    assert "seven is not a int" in capsys.readouterr().err
