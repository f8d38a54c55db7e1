"""The Dockerfile and the systemd unit: what they name is there, and what they run does what they say.

There need be no container engine and no systemd where this runs: the commands are run in folders that stand for the
places in the image, and `systemd-analyze` checks the unit where it is installed.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.packaging.conftest import ROOT, Environment, copy_into, finished
from tests.packaging.test_installed import started

from ottla.testing.ports import free_ports

UNIT = ROOT / "packaging" / "ottla.service"


class Instruction(NamedTuple):
    stage: int
    word: str
    rest: str


def instructions() -> list[Instruction]:
    """Of the Dockerfile, one for each logical line."""
    lines = [line for line in (ROOT / "Dockerfile").read_text().splitlines() if line and not line.startswith("#")]
    found: list[Instruction] = []
    stage = -1
    for line in re.sub(r"\s*\\\n\s*", " ", "\n".join(lines)).splitlines():
        word, _, rest = line.partition(" ")
        stage += word == "FROM"
        found.append(Instruction(stage, word, rest))
    return found


def of(word: str, stage: int) -> list[str]:
    return [each.rest for each in instructions() if (each.word, each.stage) == (word, stage)]


def copied() -> list[str]:
    """What the first stage takes from the checkout."""
    return [name for rest in of("COPY", 0) for name in rest.split()[:-1]]


def test_the_build_is_given_what_it_copies() -> None:
    kept = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    assert kept == set(copied())


def test_what_is_copied_is_enough_for_a_pure_wheel(tmp_path: Path) -> None:
    """It is for every processor, and has all but the kernel: what the variable of the first stage asks for."""
    copy_into(tmp_path, copied())
    assert of("ENV", 0) == ["OTTLA_PURE_WHEEL=1"]
    build: list[str | Path] = [
        sys.executable,
        "-m",
        "build",
        "--no-isolation",
        "--wheel",
        "--outdir",
        tmp_path / "dist",
    ]
    finished([*build, tmp_path], tmp_path, more={"OTTLA_PURE_WHEEL": "1"})
    (wheel,) = (tmp_path / "dist").iterdir()
    assert wheel.name.endswith("-py3-none-any.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert [name for name in names if name.endswith(".so")] == []
    assert "ottla/spark/kernel/twin.py" in names
    assert any(name.endswith("/share/ottla/config/server.properties") for name in names)


def test_the_image_runs_as_nobody_in_particular() -> None:
    words = [each.word for each in instructions() if each.stage == 1]
    assert of("USER", 1) == ["ottla"]
    assert words.index("USER") < words.index("ENTRYPOINT")
    (setting_up,) = of("RUN", 1)
    assert "useradd --uid 10092" in setting_up
    assert of("VOLUME", 1) == ["/var/lib/ottla"]


@pytest.mark.skipif(os.geteuid() != 0 or shutil.which("useradd") is None, reason="makes a user, in a folder of its own")
def test_the_commands_of_the_image_run(environment: Environment, tmp_path: Path) -> None:
    """The user and the folders are made as in the image, in a folder that stands for its root."""
    (setting_up,) = of("RUN", 1)
    (tmp_path / "etc").mkdir()
    for name in ("passwd", "group", "shadow", "gshadow"):
        (tmp_path / "etc" / name).write_text("")
    here = setting_up.replace("useradd ", f"useradd --prefix {tmp_path} ").replace("-o ottla -g ottla", "-o 10092")
    here = here.replace("/opt/ottla", str(environment.bin.parent)).replace(" /etc/", f" {tmp_path}/etc/")
    finished(["sh", "-ec", re.sub(r"(-m 750 )/var", rf"\1{tmp_path}/var", here)], tmp_path)
    assert "ottla:x:10092:" in (tmp_path / "etc/passwd").read_text()
    assert (tmp_path / "var/lib/ottla").stat().st_uid == 10092
    assert (tmp_path / "etc/ottla/server.properties").read_text() == (ROOT / "config/server.properties").read_text()


def test_the_broker_of_the_image_is_healthy_while_it_runs(environment: Environment, tmp_path: Path) -> None:
    (entry,), (command,), (health,) = of("ENTRYPOINT", 1), of("CMD", 1), of("HEALTHCHECK", 1)
    (port,) = free_ports(1)
    sample = environment.bin.parent / "share/ottla/config/server.properties"

    def here(words: str) -> list[str]:
        moved = (
            words.replace("9092", str(port)).replace("0.0.0.0", "127.0.0.1").replace("/var/lib/ottla", str(tmp_path))
        )
        return [str(word) for word in json.loads(moved.replace("/etc/ottla/server.properties", str(sample)))]

    check, *its_words = here(health.partition("CMD ")[2])
    with started(environment, *here(entry), *here(command)) as line:
        assert "accepts connections" in line
        assert "ApiVersions(18)" in environment.run(check, *its_words)
        assert (tmp_path / "meta.properties").exists()
    environment.run(check, *its_words, code=1)


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
def test_systemd_has_nothing_to_say_about_the_unit(environment: Environment, tmp_path: Path) -> None:
    unit = tmp_path / "ottla.service"
    unit.write_text(UNIT.read_text().replace("/opt/ottla", str(environment.bin.parent)))
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", unit], capture_output=True, text=True, check=False, timeout=120
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_the_unit_starts_a_broker_with_options_that_it_has(environment: Environment, tmp_path: Path) -> None:
    text = UNIT.read_text()
    (line,) = re.findall(r"^ExecStart=(.+)$", text, re.MULTILINE)
    (port,) = free_ports(1)
    program, *words = line.split()
    assert program == "/opt/ottla/bin/ottla"
    sample = environment.bin.parent / "share/ottla/config/server.properties"
    moved = [
        word.replace("/etc/ottla/server.properties", str(sample)).replace("/var/lib/ottla", str(tmp_path))
        for word in words
    ]
    address = f"listeners=PLAINTEXT://127.0.0.1:{port}"
    with started(environment, "ottla", *moved, "--set", address) as said:
        assert "accepts connections" in said
    assert (tmp_path / "meta.properties").exists()
