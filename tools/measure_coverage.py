"""How much of each package the tests run, and whether that is at least its floor: `make coverage`, not in `make test`.

What counts is what runs in the process of the tests: tests/unit, and of tests/cli the commands called there. Brokers,
Spark's workers and commands that are started as programs of their own are tested too, but not counted.
"""

import argparse
import os
import subprocess
import sys
from pathlib import Path

from coverage import Coverage

ROOT = Path(__file__).parent.parent
DATA = ROOT / "build" / "coverage" / "data"
TESTS = ("tests/unit", "tests/cli")

FLOORS = {
    "ottla/broker/handlers": 88,
    "ottla/cli": 55,
    "ottla/pipelines": 55,
}
"""Percent of the lines: what was measured, and a little less. Raise them when there is more."""


def package_of(name: str) -> str:
    """The package that a module is counted in: of the broker its rooms, of the rest the whole."""
    parts = Path(name).parts
    return "/".join(parts[: 3 if parts[1] == "broker" and len(parts) > 3 else 2])


def measure() -> int:
    """Run the tests; not 0 when one fails."""
    DATA.parent.mkdir(parents=True, exist_ok=True)
    for old in DATA.parent.glob("data*"):
        old.unlink()
    failed = 0
    for tests in TESTS:
        command = [sys.executable, "-m", "coverage", "run", "-m", "pytest", "-q", tests]
        failed |= subprocess.run(
            command, cwd=ROOT, env={**os.environ, "COVERAGE_FILE": str(DATA)}, check=False
        ).returncode
    return failed


def totals() -> dict[str, tuple[int, int]]:
    """(lines that ran, lines) by package."""
    measured = Coverage(data_file=str(DATA), config_file=str(ROOT / "pyproject.toml"))
    measured.combine(keep=True)
    found: dict[str, tuple[int, int]] = {}
    for file in sorted(measured.get_data().measured_files()):
        _, lines, _, missing, _ = measured.analysis2(file)
        package = package_of(Path(file).relative_to(ROOT / "src").as_posix())
        ran, all_lines = found.get(package, (0, 0))
        found[package] = (ran + len(lines) - len(missing), all_lines + len(lines))
    return found


def report(found: dict[str, tuple[int, int]]) -> list[str]:
    """Print a line for each package; the packages that are below their floor."""
    below = []
    for package, (ran, lines) in found.items():
        percent = 100 * ran / lines if lines else 100.0
        floor = FLOORS.get(package)
        print(f"{package:<32} {percent:5.1f} % of {lines:>6} lines" + (f", floor {floor} %" if floor else ""))
        if floor is not None and percent < floor:
            below.append(f"{package} has {percent:.1f} %, less than its floor of {floor} %: test what is new there")
    return below + [f"{package} is not measured: its floor is for nothing" for package in FLOORS.keys() - found.keys()]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--report", action="store_true", help="run no tests; report what was measured last")
    failed = 0 if parser.parse_args().report else measure()
    below = report(totals())
    for line in below:
        print(line, file=sys.stderr)
    return 1 if failed or below else 0


if __name__ == "__main__":
    sys.exit(main())
