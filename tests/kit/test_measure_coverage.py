"""`make coverage`: what is below its floor, and a floor that nothing is measured for, end it with 1."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
HANDLERS, CLI, PIPELINES = "ottla/broker/handlers", "ottla/cli", "ottla/pipelines"


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("measure_coverage", ROOT / "tools" / "measure_coverage.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_packages_with_the_fewest_tests_have_floors(tool: ModuleType) -> None:
    assert tool.FLOORS.keys() == {HANDLERS, CLI, PIPELINES}
    files = {"ottla/broker/handlers/fetching/packing.py", "ottla/cli/admin/acls.py", "ottla/pipelines/mirror/sink.py"}
    assert {tool.package_of(file) for file in files} == tool.FLOORS.keys(), "rooms count for their package"
    assert all((ROOT / "src" / file).exists() for file in files)


def test_less_than_a_floor_is_told(tool: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["measure_coverage", "--report"])
    enough = {package: (floor, 100) for package, floor in tool.FLOORS.items()}
    for found, told in (
        ({**enough, "ottla/tls": (0, 100)}, 0),
        ({**enough, CLI: (tool.FLOORS[CLI] - 1, 100)}, 1),
        ({CLI: enough[CLI], HANDLERS: enough[HANDLERS]}, 1),
    ):
        monkeypatch.setattr(tool, "totals", lambda found=found: found)
        assert len(tool.report(found)) == told
        assert tool.main() == told
