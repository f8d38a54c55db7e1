"""Build .venv: the locked dependencies, then the package itself, editable. Needs only Python 3.11+ and PyPI."""

import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).parent.parent
VENV = ROOT / ".venv"


def main() -> int:
    if sys.version_info < (3, 11):  # noqa: UP036 (run by whatever python3 the user has)
        print(f"Ottla needs Python 3.11 or newer; this is {sys.version.split()[0]}. Try: make setup PYTHON=python3.11")
        return 1
    python = VENV / "bin/python"
    if not python.exists():
        print("creating .venv", flush=True)
        venv.create(VENV, with_pip=True, symlinks=True)
    if subprocess.run([python, "-m", "pip", "--version"], capture_output=True, check=False).returncode:
        subprocess.run([python, "-m", "ensurepip", "--upgrade"], check=True)
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    print("installing the locked dependencies (about a minute)", flush=True)
    subprocess.run([*pip, "--require-hashes", "-r", str(ROOT / "requirements.lock")], check=True)
    print("installing ottla", flush=True)
    subprocess.run([*pip, "--no-deps", "--no-build-isolation", "-e", str(ROOT)], check=True)
    # Where PYTHONDONTWRITEBYTECODE is set, every start of a broker or a Spark worker would compile the package anew.
    subprocess.run([python, "-m", "compileall", "-q", "-j", "0", str(ROOT / "src")], check=False)
    print("keeping Spark's classes for quick starts (half a minute, once)", flush=True)
    subprocess.run([python, "-m", "ottla.spark.archive_making"], check=False)  # Spark starts without it, too
    return 0


if __name__ == "__main__":
    sys.exit(main())
