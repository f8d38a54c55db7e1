"""python -m tests.simulation --seeds 0-9999 [--jobs 2]: run many seeds, say which ones break a promise.

python -m tests.simulation --seed N --verbose: run one again, and see everything that happened in it.
"""

import argparse
import multiprocessing
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator

from tests.simulation.world import Result, run

HASH_SEED = "0"
PROGRESS_SECONDS = 5.0
SEEDS_PER_PROCESS = 200


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seeds", default="0-99", help="first-last, both included")
    parser.add_argument("--seed", type=int, help="run this one only")
    parser.add_argument("--jobs", type=int, default=1, help="processes to run them in")
    parser.add_argument("--verbose", action="store_true", help="print what happens (with --seed)")
    parser.add_argument("--stop-after", type=int, default=20, help="failing seeds after which to stop")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="time after which to stop")
    options = parser.parse_args(arguments)
    if options.seed is not None:
        return _report([run(options.seed, verbose=options.verbose)], one=True)
    first, _, last = options.seeds.partition("-")
    seeds = range(int(first), int(last or first) + 1)
    return _report(list(_watched(seeds, options.jobs, options.stop_after, options.seconds)), one=False)


def _watched(seeds: range, jobs: int, stop_after: int, seconds: float) -> Iterator[Result]:
    """Results as they come, with a line of progress now and then."""
    started = said = time.monotonic()
    failed = 0
    for number, result in enumerate(_results(seeds, jobs), 1):
        if result.violations:
            failed += 1
            print(f"seed {result.seed} fails: {result.violations[0]}", flush=True)
        now = time.monotonic()
        if now - said > PROGRESS_SECONDS:
            said = now
            print(f"{number} of {len(seeds)} seeds, {failed} fail, {number / (now - started):.1f} a second", flush=True)
        yield result
        if failed >= stop_after or now - started > seconds:
            return


def _results(seeds: range, jobs: int) -> Iterator[Result]:
    if jobs == 1:
        yield from map(run, seeds)
        return
    with multiprocessing.get_context("fork").Pool(jobs, maxtasksperchild=SEEDS_PER_PROCESS) as pool:
        yield from pool.imap_unordered(run, seeds)


def _report(results: list[Result], *, one: bool) -> int:
    failing = sorted((result for result in results if result.violations), key=lambda result: result.seed)
    for result in failing:
        print(f"\nseed {result.seed}: {', '.join(result.faults)}")
        for violation in result.violations[:5]:
            print(f"  {violation}")
        print(f"  again: python -m tests.simulation --seed {result.seed} --verbose")
    faults = Counter(name.split()[0] for result in results for name in result.faults)
    print(
        f"\n{len(results)} seeds, {len(failing)} fail; {sum(result.virtual_seconds for result in results):.0f} s of "
        f"virtual time, {sum(result.requests for result in results)} requests, "
        f"{sum(result.acknowledged for result in results)} acknowledged records, "
        f"{sum(result.leader_changes for result in results)} changes of leaders, "
        f"{sum(bool(result.excused) for result in results)} runs with a loss that is excused"
    )
    print("faults: " + ", ".join(f"{name} {count}" for name, count in sorted(faults.items())))
    if one:
        print(f"trace {results[0].trace}")
    return 1 if failing else 0


def _with_fixed_hashes() -> None:
    """Sets of strings have another order in every process unless Python is told otherwise before it starts."""
    if os.environ.get("PYTHONHASHSEED") != HASH_SEED:
        os.environ["PYTHONHASHSEED"] = HASH_SEED
        os.execv(sys.executable, [sys.executable, "-m", "tests.simulation", *sys.argv[1:]])


if __name__ == "__main__":
    _with_fixed_hashes()
    sys.exit(main())
