"""Build .venv: the locked dependencies, then the package itself, editable. Needs only Python 3.11+ and PyPI."""

import re
import subprocess
import sys
import tempfile
import venv
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).parent.parent
VENV = ROOT / ".venv"
PYTHON = VENV / "bin/python"
HALF_DONE = ".half-done"
"""Stands in .venv while things are installed. Who finds it follows a set-up that was killed in the middle."""


def create() -> None:
    """An environment with pip; a new one where the last set-up left packages half installed, which pip cannot mend."""
    killed = (VENV / HALF_DONE).exists()
    if killed:
        print("the last set-up was ended in the middle: .venv is made anew", flush=True)
    elif not PYTHON.exists():
        print("creating .venv", flush=True)
    if killed or not PYTHON.exists():
        venv.create(VENV, with_pip=True, symlinks=True, clear=killed)
    if subprocess.run([PYTHON, "-m", "pip", "--version"], capture_output=True, check=False).returncode:
        subprocess.run([PYTHON, "-m", "ensurepip", "--upgrade"], check=True)


def install() -> None:
    print("installing the locked dependencies (about a minute)", flush=True)
    # Of Spark a wheel of hundreds of megabytes is made and unpacked again, on one processor: the others do not wait.
    spark, others = split_lock((ROOT / "requirements.lock").read_text(), "pyspark")
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor() as both:
        places = [Path(folder, "spark.txt"), Path(folder, "others.txt")]
        list(both.map(install_locked, places, [spark, others]))
    print("installing ottla", flush=True)
    pip("--no-deps", "--no-build-isolation", "-e", str(ROOT))
    # pip does it one file after the other. And where PYTHONDONTWRITEBYTECODE is set, every start of a broker or a Spark
    # worker would compile the package anew.
    packages = next((VENV / "lib").glob("python*/site-packages"))
    subprocess.run([PYTHON, "-m", "compileall", "-qq", "-j", "0", str(ROOT / "src"), str(packages)], check=False)
    print("keeping Spark's classes for quick starts (half a minute, once)", flush=True)
    subprocess.run([PYTHON, "-m", "ottla.spark.archive_making"], check=False)  # Spark starts without it, too


def split_lock(text: str, name: str) -> tuple[str, str]:
    """The locked requirement with this name, and the others."""
    each = re.split(r"^(?=[^\s#])", text, flags=re.MULTILINE)
    chosen = [one for one in each if one.startswith(f"{name}==")]
    return "".join(chosen), "".join(one for one in each if one not in chosen)


def install_locked(path: Path, lock: str) -> None:
    path.write_text(lock)
    pip("--no-deps", "--require-hashes", "-r", str(path))


def pip(*arguments: str) -> None:
    program = [str(PYTHON), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile"]
    subprocess.run([*program, *arguments], check=True)


def main() -> int:
    if sys.version_info < (3, 11):  # noqa: UP036 (run by whatever python3 the user has)
        print(f"Ottla needs Python 3.11 or newer; this is {sys.version.split()[0]}. Try: make setup PYTHON=python3.11")
        return 1
    if find_spec("ensurepip") is None:
        print("This Python cannot make environments. On Debian and Ubuntu: apt-get install python3-venv")
        return 1
    create()
    (VENV / HALF_DONE).touch()
    try:
        install()
    except subprocess.CalledProcessError as refused:  # pip has said why, and downloads before it touches anything
        (VENV / HALF_DONE).unlink()
        return refused.returncode
    (VENV / HALF_DONE).unlink()
    return 0


if __name__ == "__main__":
    sys.exit(main())
