"""The sdist and the wheel: what is in them, and where a wheel may be installed."""

import email
import email.message
import platform
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from tests.packaging.conftest import COMPILES, ROOT, Distributions, finished, needs_compiler

import ottla


def metadata(wheel: Path) -> email.message.Message:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [each for each in archive.namelist() if each.endswith(".dist-info/METADATA")]
        return email.message_from_bytes(archive.read(name))


def test_the_version_stands_in_one_place(dist: Distributions) -> None:
    assert metadata(dist.wheel)["Version"] == ottla.__version__
    assert dist.sdist.name == f"ottla-{ottla.__version__}.tar.gz"
    written = re.compile(rf"(?<![\w.=]){re.escape(ottla.__version__)}(?![\w.])")
    places = [*(ROOT / "src").rglob("*.py"), ROOT / "pyproject.toml"]
    assert [path.name for path in places if written.search(path.read_text())] == ["__init__.py"]


def test_the_newest_change_is_of_this_version() -> None:
    newest = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert newest is not None
    assert newest[1] == ottla.__version__


def test_an_index_is_told_the_licence_and_no_address_that_does_not_exist(dist: Distributions) -> None:
    told = metadata(dist.wheel)
    assert told["Metadata-Version"] == "2.4", "newer ones are not taken everywhere"
    assert told["License-Expression"] == "Apache-2.0"
    assert told.get_all("License-File") == ["LICENSE", "NOTICE"]
    assert told.get_all("Project-URL") is None
    with zipfile.ZipFile(dist.wheel) as archive:
        names = archive.namelist()
        (licence,) = [name for name in names if name.endswith(".dist-info/licenses/LICENSE")]
        assert "Apache License" in archive.read(licence).decode()
    assert any(name.endswith(".dist-info/licenses/NOTICE") for name in names)


def test_the_wheel_has_the_package_and_its_samples_and_nothing_else(dist: Distributions) -> None:
    with zipfile.ZipFile(dist.wheel) as archive:
        names = archive.namelist()
    root = f"ottla-{ottla.__version__}"
    assert {name.split("/")[0] for name in names} == {"ottla", "pyspark_ottla", f"{root}.data", f"{root}.dist-info"}
    samples = {name.removeprefix(f"{root}.data/data/") for name in names if name.startswith(f"{root}.data/")}
    shipped = {f"share/ottla/config/{path.name}" for path in (ROOT / "config").iterdir()}
    assert samples == {*shipped, "share/ottla/ottla.service"}
    assert "ottla/py.typed" in names
    assert ("ottla/spark/kernel/_kernel.so" in names) is COMPILES


def test_the_sdist_has_what_a_packager_needs_and_nothing_that_was_built(dist: Distributions) -> None:
    with tarfile.open(dist.sdist) as archive:
        names = [name.partition("/")[2] for name in archive.getnames()]
    wanted = ["LICENSE", "NOTICE", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "Dockerfile", "requirements.lock"]
    wanted += ["config/server.properties", "packaging/ottla.service", "docs/settings.md", "tests/conftest.py"]
    assert [name for name in wanted if name not in names] == []
    assert [
        name for name in names if name.endswith((".so", ".pyc")) or name.startswith((".venv", "dist", "build"))
    ] == []


@needs_compiler
def test_the_tag_is_what_auditwheel_finds(dist: Distributions) -> None:
    """The build reads the library itself; auditwheel, which knows the policies of package indexes, must agree."""
    tag = dist.wheel.stem.split("-", 2)[2]
    assert tag == f"py3-none-manylinux_2_17_{platform.machine()}", "the kernel needs a newer glibc than it did"
    shown = finished([Path(sys.executable).with_name("auditwheel"), "show", dist.wheel], dist.wheel.parent)
    assert f'consistent with the following platform tag: "manylinux_2_17_{platform.machine()}"' in " ".join(
        shown.split()
    )


NEWER = "#include <math.h>\ndouble newer(double x) { return exp(x); }\n"  # exp@GLIBC_2.29, and another library


@needs_compiler
def test_a_library_that_needs_more_than_glibc_is_not_for_every_linux(tmp_path: Path) -> None:
    (tmp_path / "newer.c").write_text(NEWER)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", "newer.so", "newer.c", "-lm"], cwd=tmp_path, check=True)
    judged = f"from hatch_build import *; print(platform_tag(Path({str(tmp_path / 'newer.so')!r})))"
    assert finished([sys.executable, "-c", judged], ROOT).strip() == f"linux_{platform.machine()}"


@pytest.mark.parametrize("name", ["CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md"])
def test_the_page_is_reached_from_the_first_one(name: str) -> None:
    assert f"]({name})" in (ROOT / "README.md").read_text()
