"""Run all tests in two processes side by side: most of those that run Spark, and all others.

Spark's tests keep a processor busy for minutes while the others mostly wait for brokers, elections and sessions. What
pytest prints comes line by line from both, as files are done; failures and summaries come in the end, one by one.
"""

import asyncio
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TESTS = ROOT / "tests"
ON_SPARK = ("pipelines", "spark", "spark_reliability")
"""The examples run Spark too, and are with the others so that both halves take about as long."""
POLITENESS = 5
"""How much Spark's tests stand back: they can wait, and a broker that waits too long is taken for dead."""


def folders() -> list[list[str]]:
    """The two halves. A new folder belongs to the others, unless it is named above."""
    found = sorted(path.name for path in TESTS.iterdir() if path.is_dir() and any(path.rglob("test_*.py")))
    unknown = set(ON_SPARK) - set(found)
    assert not unknown, f"there are no tests in {', '.join(sorted(unknown))}"
    others = [name for name in found if name not in ON_SPARK]
    return [[f"tests/{name}" for name in half] for half in (ON_SPARK, others)]


async def run_half(paths: list[str], arguments: list[str], politeness: int) -> tuple[int, list[str]]:
    """Print its lines while it goes on; return its exit code and what it says in the end."""
    process = await asyncio.create_subprocess_exec(
        *("nice", "-n", str(politeness), sys.executable, "-m", "pytest", "--color=no", *arguments, *paths),
        cwd=ROOT,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        limit=2**24,
    )
    assert process.stdout is not None
    said: list[str] = []
    collected = False
    async for raw in process.stdout:
        line = raw.decode(errors="replace").rstrip("\n")
        if said or (collected and line.startswith("=====")):
            said.append(line)
        else:
            print(line, flush=True)
            collected = collected or line.startswith("collected")
    return await process.wait(), said


async def main(arguments: list[str]) -> int:
    on_spark, others = folders()
    halves = await asyncio.gather(run_half(on_spark, arguments, POLITENESS), run_half(others, arguments, 0))
    for _, said in sorted(halves, key=lambda half: half[0] != 0):  # what failed is read first, so it is printed last
        print("\n".join(said), flush=True)
    return int(any(code for code, _ in halves))


if __name__ == "__main__":
    sys.exit(asyncio.run(main(sys.argv[1:])))
