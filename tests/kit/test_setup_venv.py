"""`make setup` itself: one that was killed in the middle is begun anew, and one that was refused says no more."""

import importlib.util
import re
import subprocess
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def setup(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The program, for an environment that lies elsewhere."""
    spec = importlib.util.spec_from_file_location("setup_venv", ROOT / "tools" / "setup_venv.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "VENV", tmp_path / ".venv")
    monkeypatch.setattr(module, "PYTHON", tmp_path / ".venv/bin/python")
    return module


@pytest.fixture
def half_a_package(setup: ModuleType) -> Path:
    """An environment in which pip trips over a package without a version, whatever it is asked for."""
    (setup.VENV / "bin").mkdir(parents=True)
    setup.PYTHON.symlink_to("/bin/true")
    package: Path = setup.VENV / "lib/python3/site-packages/pytest-9.2.0.dist-info"
    package.mkdir(parents=True)
    return package


def test_a_set_up_that_was_killed_is_begun_anew(
    setup: ModuleType, half_a_package: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def killed() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(setup, "install", killed)
    with pytest.raises(KeyboardInterrupt):
        setup.main()
    assert half_a_package.exists()
    monkeypatch.setattr(setup, "install", lambda: None)
    assert setup.main() == 0
    assert "ended in the middle" in capsys.readouterr().out
    assert not half_a_package.exists()
    assert subprocess.run([setup.PYTHON, "-m", "pip", "--version"], capture_output=True, check=False).returncode == 0
    assert not (setup.VENV / setup.HALF_DONE).exists()


def test_a_python_that_cannot_make_environments_is_told(
    setup: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(setup, "find_spec", lambda _: None)
    assert setup.main() == 1
    assert "apt-get install python3-venv" in capsys.readouterr().out
    assert not setup.VENV.exists()


def test_what_is_there_stays_when_pip_refuses(
    setup: ModuleType, half_a_package: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused() -> None:
        raise subprocess.CalledProcessError(2, "pip")

    monkeypatch.setattr(setup, "install", refused)
    assert setup.main() == 2
    assert half_a_package.exists()
    assert not (setup.VENV / setup.HALF_DONE).exists()


def test_the_lock_is_split_into_spark_and_all_the_others(setup: ModuleType) -> None:
    lock = (ROOT / "requirements.lock").read_text()
    spark, others = setup.split_lock(lock, "pyspark")
    assert re.findall("^[a-z0-9-]+==", spark, re.MULTILINE) == ["pyspark=="]
    assert "--hash=sha256:" in spark
    assert sorted([*spark.splitlines(), *others.splitlines()]) == sorted(lock.splitlines())
    assert setup.split_lock("a==1 \\\n    --hash=x\nb==2 \\\n    --hash=y\n    # via a\n", "b") == (
        "b==2 \\\n    --hash=y\n    # via a\n",
        "a==1 \\\n    --hash=x\n",
    )
