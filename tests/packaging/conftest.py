"""What a user gets: the distributions of this checkout, and an environment into which the wheel is installed."""

import os
import platform
import shutil
import signal
import subprocess
import sys
import sysconfig
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
SECONDS_MAX = 500.0
"""More than any of it takes, on a machine that is busy with all the other tests."""
PARTS_OF_THE_CHECKOUT = ("ottla-", "_editable_impl_ottla", "ottla.pth")


COMPILES = shutil.which(os.environ.get("CC", "cc")) is not None
"""Whether a wheel that is built here has the compiled kernel. Nothing else needs a compiler."""
needs_compiler = pytest.mark.skipif(
    not COMPILES or platform.libc_ver()[0] != "glibc", reason="there is no C compiler for glibc"
)


class Distributions(NamedTuple):
    sdist: Path
    wheel: Path


def finished(
    arguments: Sequence[str | Path],
    folder: Path,
    *,
    text: str = "",
    code: int = 0,
    more: Mapping[str, str] | None = None,
) -> str:
    """What a command printed, once it has ended as it should."""
    process = subprocess.Popen(
        [str(word) for word in arguments],
        cwd=folder,
        env={**clean_variables(), **(more or {})},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        printed, logged = process.communicate(text, timeout=SECONDS_MAX)
    finally:
        if process.poll() is None:  # it took too long; what it has started, Spark's Java, must go with it
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
    assert process.returncode == code, f"{arguments} ended with {process.returncode}:\n{printed}\n{logged}"
    return printed


def clean_variables() -> dict[str, str]:
    """The environment without what would lead a program back to this checkout."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "OTTLA"))}
    java = os.environ.get("OTTLA_JAVA_OPTIONS")
    return {**kept, "OTTLA_JAVA_OPTIONS": java} if java else kept


@pytest.fixture(scope="session")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Distributions:
    """As `make dist` does: the sdist from the checkout, and the wheel from nothing but the sdist."""
    folder = tmp_path_factory.mktemp("dist")
    finished([sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, ROOT], folder)
    (sdist,) = folder.glob("*.tar.gz")
    (wheel,) = folder.glob("*.whl")
    return Distributions(sdist, wheel)


class Environment:
    """A virtual environment with the wheel in it. The dependencies are those of this environment, and nothing else."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.bin = folder / "venv" / "bin"
        finished([sys.executable, "-m", "venv", "--without-pip", folder / "venv"], folder)
        borrowed = folder / "dependencies"
        borrowed.mkdir()
        here = Path(sysconfig.get_path("purelib"))
        for entry in here.iterdir():
            if not entry.name.startswith(PARTS_OF_THE_CHECKOUT):
                (borrowed / entry.name).symlink_to(entry)
        (own,) = (folder / "venv" / "lib").glob("python*/site-packages")
        (own / "dependencies.pth").write_text(f"{borrowed}\n")

    def install(self, wheel: Path) -> None:
        pip: list[str | Path] = [
            sys.executable,
            "-m",
            "pip",
            "--python",
            self.bin / "python",
            "install",
            "--quiet",
            "--no-compile",
        ]
        finished([*pip, "--no-deps", "--no-index", wheel], self.folder)

    def run(self, command: str, *arguments: str | Path, text: str = "", code: int = 0) -> str:
        """What a command of this environment printed, started far away from the checkout."""
        return finished([self.bin / command, *arguments], self.folder, text=text, code=code, more=self.variables)

    @property
    def variables(self) -> dict[str, str]:
        """As an activated environment has them, and with notes of processes where no other run looks."""
        return {
            "PATH": f"{self.bin}{os.pathsep}{os.environ['PATH']}",
            "OTTLA_RUN_DIR": str(self.folder / "run"),
            "OTTLA_CLASS_ARCHIVE": "off",  # it would be for a PySpark at this path, which no other run has
        }


@pytest.fixture(scope="session")
def environment(dist: Distributions, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    made = Environment(tmp_path_factory.mktemp("installed"))
    made.install(dist.wheel)
    return made


def copy_into(folder: Path, names: Sequence[str]) -> None:
    """Files and folders of the checkout, without what was built there."""
    for name in names:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("__pycache__", "*.so"))
        else:
            shutil.copy(source, folder / name)
