"""Which kernel is used, and what is said when the one asked for is not there."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ottla.spark.kernel.choice import NoSuchKernel, choose
from ottla.spark.kernel.native import LIBRARY, NativeKernel, StaleKernel
from ottla.spark.kernel.twin import TwinKernel

ROOT = Path(__file__).parents[4]


def test_python_can_be_forced() -> None:
    assert isinstance(choose("python"), TwinKernel)


def test_the_compiled_one_is_taken_where_it_was_built() -> None:
    assert isinstance(choose(""), NativeKernel if LIBRARY.exists() else TwinKernel)


def test_another_name_is_refused() -> None:
    with pytest.raises(NoSuchKernel, match="it must be c or python"):
        choose("rust")


def test_the_compiled_one_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    missing = tmp_path / "_kernel.so"
    monkeypatch.setattr(NativeKernel.__init__, "__defaults__", (missing,))
    assert isinstance(choose(""), TwinKernel)
    with pytest.raises(NoSuchKernel, match="Install a C compiler"):
        choose("c")


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
def test_a_library_of_another_source_is_not_used(tmp_path: Path) -> None:
    source, library = tmp_path / "other.c", tmp_path / "other.so"
    source.write_text("int ottla_abi(void) { return -1; }")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
    with pytest.raises(StaleKernel, match="make setup"):
        NativeKernel(library)


@pytest.mark.parametrize("compiler", ["cc", "no-such-compiler"])
def test_a_wheel_has_the_library_where_there_is_a_compiler(tmp_path: Path, compiler: str) -> None:
    """From a copy of the sources, so that the library of this checkout stays as it is."""
    if compiler == "cc" and shutil.which("cc") is None:
        pytest.skip("needs a C compiler")
    checkout = tmp_path / "checkout"
    checkout.mkdir()
    for name in ("pyproject.toml", "hatch_build.py", "README.md", "LICENSE", "NOTICE"):
        shutil.copy(ROOT / name, checkout)
    for name in ("src", "config", "packaging"):
        shutil.copytree(ROOT / name, checkout / name, ignore=shutil.ignore_patterns("__pycache__", "*.so"))
    built = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", tmp_path / "dist"],
        cwd=checkout, env=os.environ | {"CC": compiler}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    (wheel,) = (tmp_path / "dist").iterdir()
    listing = subprocess.run(
        [sys.executable, "-m", "zipfile", "-l", wheel], capture_output=True, text=True, check=True
    ).stdout
    if compiler == "cc":
        assert "ottla/spark/kernel/_kernel.so" in listing
        assert re.search(r"-py3-none-(many)?linux_", wheel.name)
    else:
        assert "_kernel.so" not in listing
        assert wheel.name.endswith("py3-none-any.whl")
        assert "no C compiler" in built.stdout + built.stderr
