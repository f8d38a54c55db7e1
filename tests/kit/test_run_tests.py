"""`make test` itself: every file runs once, what failed is told last, and the last line has the count of all."""

import importlib.util
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from types import ModuleType

import pytest

from ottla.testing.waiting import wait_until

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def runner() -> ModuleType:
    spec = importlib.util.spec_from_file_location("run_tests", ROOT / "tools" / "run_tests.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["run_tests"] = module  # where its dataclasses look themselves up
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def elsewhere(runner: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with tests of its own."""
    monkeypatch.setattr(runner, "ROOT", tmp_path)
    monkeypatch.setattr(runner, "TESTS", tmp_path / "tests")
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # starts sooner
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = -ra -p no:cacheprovider\n")
    return tmp_path / "tests"


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def unlucky(end: str) -> str:
    """A file with a test that ends so, and knows whether it runs for the first time; `ran` is left beside it."""
    return (
        "import os, pathlib, signal\ndef test_b():\n"
        "    mark = pathlib.Path(__file__).with_name('ran')\n    first = not mark.exists()\n    mark.touch()\n"
        f"    {end}\n"
    )


def test_every_file_is_in_one_group(runner: ModuleType) -> None:
    counted = Counter(file for group in runner.groups() for file in group.files)
    assert set(counted) == {str(path.relative_to(ROOT)) for path in (ROOT / "tests").rglob("test_*.py")}
    assert set(counted.values()) == {1}
    assert {file.split("/")[1] for group in runner.groups(["unit", "golden"]) for file in group.files} == {
        "unit", "golden"
    }  # fmt: skip


def test_every_group_that_is_named_has_files(runner: ModuleType) -> None:
    assert {group.name for group in runner.known_groups()} <= {group.name for group in runner.groups()}


def test_what_failed_comes_last_and_everything_is_counted(
    runner: ModuleType, elsewhere: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(elsewhere / "unit/test_a.py", "def test_a(): pass\ndef test_b(): pass\n")
    write(
        elsewhere / "new/test_b.py",
        "import pytest\ndef test_c(): assert 1 == 2\n@pytest.mark.skip\ndef test_d(): pass\n",
    )
    write(
        elsewhere / "cli/test_c.py",
        "import pytest\n@pytest.fixture\ndef broken(): raise OSError\ndef test_e(broken): pass\n",
    )
    assert runner.main([]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1] == "2 passed, 2 failed, 1 skipped"
    assert any(line.startswith("tests/unit/test_a.py ..") for line in lines)
    assert lines.index("new failed: exit code 1") > next(n for n, line in enumerate(lines) if "2 passed in" in line)
    assert any("assert 1 == 2" in line for line in lines[lines.index(next(x for x in lines if x.endswith("in all"))) :])


def test_what_fails_once_is_run_again_alone_and_named(
    runner: ModuleType, elsewhere: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(elsewhere / "unit/test_a.py", "def test_a(): pass\n")
    write(elsewhere / "new/test_b.py", unlucky("assert not first"))
    assert runner.main([]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[-2:] == [
        "passed only when they were run again, look at them: tests/new/test_b.py", "2 passed, 0 failed, 0 skipped"
    ]  # fmt: skip
    (elsewhere / "new/ran").unlink()
    assert runner.main(["--once"]) == 1
    assert capsys.readouterr().out.splitlines()[-1] == "1 passed, 1 failed, 0 skipped"


def test_a_process_that_dies_is_a_failure(
    runner: ModuleType, elsewhere: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(elsewhere / "unit/test_a.py", "def test_a(): pass\n")
    write(elsewhere / "new/test_b.py", "import os\ndef test_b(): os._exit(11)\n")
    assert runner.main([]) == 1
    out = capsys.readouterr().out
    assert "new failed: exit code 11" in out
    assert out.splitlines()[-1] == "1 passed, 1 failed, 0 skipped"


def test_a_process_that_a_client_library_took_with_it_runs_again(
    runner: ModuleType, elsewhere: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(elsewhere / "new/test_b.py", unlucky("first and os.kill(os.getpid(), signal.SIGSEGV)"))
    assert runner.main([]) == 0
    out = capsys.readouterr().out
    assert "new failed: exit code -11" in out
    assert "passed only when they were run again, look at them: tests/new/test_b.py" in out
    (elsewhere / "new/ran").unlink()
    assert runner.main(["--once"]) == 1


def test_folders_and_options_are_chosen(
    runner: ModuleType, elsewhere: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(elsewhere / "unit/test_a.py", "def test_one(): pass\ndef test_two(): pass\n")
    write(elsewhere / "new/test_b.py", "def test_c(): assert False\n")
    assert runner.main(["unit", "-q", "-k", "test_one"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "1 passed, 0 failed, 0 skipped"
    assert runner.main(["-k", "test_two"]) == 0, "a group without such a test is no failure"
    assert runner.main(["-k", "no such test"]) != 0


def test_an_interrupt_ends_it_in_order(elsewhere: Path, tmp_path: Path) -> None:
    """As at a terminal, where every process is told: what has been found so far is shown."""
    begun = tmp_path / "begun"
    write(elsewhere / "unit/test_a.py", f"import time\ndef test_a(): open({str(begun)!r}, 'w'); time.sleep(600)\n")
    program = (
        # A shell that starts this run in the background has interrupts ignored, and children inherit that.
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
        f"import pathlib, sys; sys.path.insert(0, {str(ROOT / 'tools')!r}); import run_tests as r; "
        f"r.ROOT = pathlib.Path({str(tmp_path)!r}); r.TESTS = r.ROOT / 'tests'; sys.exit(r.main([]))"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, start_new_session=True
    )  # fmt: skip
    wait_until(begun.exists, "the test runs", seconds=120)
    os.killpg(process.pid, signal.SIGINT)
    out, _ = process.communicate(timeout=120)
    assert process.returncode == 1
    assert out.splitlines()[-2:] == ["interrupted: not everything was run", "0 passed, 1 failed, 0 skipped"]


def test_what_a_client_says_behind_the_closing_line_hides_no_count(runner: ModuleType) -> None:
    said = [
        "FAILED tests/a.py::test_b",
        "==== 1 failed, 74 passed in 89.65s (0:01:29) ====",
        "%3|FAIL|rdkafka#producer-5| refused",
    ]
    group = runner.Group("server", runner.WAITING, 1, ("server/",))
    assert runner.Outcome(group, 1, 1.0, 1.0, said).counts == {"passed": 74, "failed": 1}
