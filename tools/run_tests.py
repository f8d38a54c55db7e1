"""Run the tests in several processes side by side: `run_tests.py [FOLDER ...] [options of pytest]`.

Tests that run brokers mostly wait for them, for elections and for sessions; those of Spark, the simulation and the unit
tests compute. So files are put into groups, a pytest process for each, and of every kind only so many run at a time,
the longest first. What pytest prints comes line by line while files are done. In the end come the summaries, a table of
the groups, everything about those that failed, and one line with the count of all.

Files with failures are run once more when all else has ended, by themselves: what passes then had met a machine that
was too busy, or a race that needs luck. It is named before the count, so that somebody looks at it. `--once` leaves it
at the first run.
"""

import os
import re
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from pathlib import Path

ONCE = "--once"
ROOT = Path(__file__).resolve().parent.parent
TESTS = ROOT / "tests"


@dataclass(frozen=True)
class Kind:
    """What tests need while they run, and so how many processes of them run at a time."""

    name: str
    at_once: int
    niceness: int = 0
    """Who computes stands back: it can wait, and a broker that waits too long is taken for dead."""


# One more than there are processors: tests of Spark wait for batches, and nothing else may be left to fill the gaps.
COMPUTING = Kind("computing", at_once=(os.cpu_count() or 1) + 1, niceness=2)
CLUSTERS = Kind("clusters", at_once=1)
WAITING = Kind("waiting", at_once=2)


@dataclass
class Group:
    """Files for one process, so that they share its brokers and its Spark session."""

    name: str
    kind: Kind
    seconds: int
    """About how long it takes: nothing depends on it but the order."""
    prefixes: tuple[str, ...]
    files: list[str] = field(default_factory=list)


def known_groups() -> list[Group]:
    """A file belongs to the group with the longest prefix of its path; a folder in none of them is its own group."""
    return [
        Group("pipelines", COMPUTING, 1_100, ("pipelines/",)),
        # Those of two folders are together because the second finds a warm JVM.
        Group("spark", COMPUTING, 1_000, ("spark/", "pipelines/steps/")),
        Group("examples", COMPUTING, 900, ("examples/", "pipelines/connectors/")),
        Group("spark, killed", COMPUTING, 190, ("spark_reliability/",)),
        Group("unit", COMPUTING, 310, ("unit/", "golden/")),
        Group("unit, broker", COMPUTING, 195, ("unit/broker/",)),
        Group("simulation", COMPUTING, 165, ("simulation/",)),
        Group("unit, storage", COMPUTING, 85, ("unit/broker/storage/",)),
        Group("unit, cluster", COMPUTING, 70, ("unit/cluster/",)),
        Group("cluster", CLUSTERS, 460, ("cluster/",)),
        Group("cluster, soaks", CLUSTERS, 220, ("cluster/test_transactions.py", "cluster/test_soak.py")),
        Group("cli", WAITING, 440, ("cli/",)),
        Group("clients", WAITING, 200, ("clients/",)),
    ]


def groups(folders: Sequence[str] = ()) -> list[Group]:
    """Every test file of these folders (of all without any), each in one group."""
    found = known_groups()
    for path in sorted(TESTS.rglob("test_*.py")):
        file = path.relative_to(TESTS).as_posix()
        folder = file.split("/")[0]
        if folders and folder not in folders:
            continue
        matching = [(len(p), group) for group in found for p in group.prefixes if file.startswith(p)]
        if not matching:
            matching = [(0, Group(folder, WAITING, 60, (f"{folder}/",)))]
            found.append(matching[0][1])
        max(matching, key=lambda match: match[0])[1].files.append(f"tests/{file}")
    return sorted((group for group in found if group.files), key=lambda group: -group.seconds)


@dataclass
class Outcome:
    """How a group went."""

    group: Group
    code: int
    seconds: float
    processor_seconds: float
    said: list[str]
    """What pytest says in the end: failures, slow tests, the closing line. Or its last words, if it ended before."""

    @property
    def good(self) -> bool:
        return self.code in (0, NOTHING_SELECTED)

    @property
    def failed_files(self) -> list[str]:
        return list(dict.fromkeys(found[1] for line in self.said if (found := _FAILED.match(line))))

    @property
    def worth_another_look(self) -> list[str]:
        """Files with failures. Where a client's library took the whole process with it, nobody knows: then all."""
        return self.failed_files or (self.group.files if self.code < 0 else [])

    @property
    def counts(self) -> Counter[str]:
        """Tests by what came of them, as the closing line has it."""
        found: Counter[str] = Counter()
        closing = next(
            (line for line in reversed(self.said) if _CLOSING.match(line)), ""
        )  # clients may speak behind it
        for number, word in _COUNT.findall(closing):
            found[_WORDS[word]] += int(number)
        if not self.good and not found["failed"]:
            found["failed"] = 1  # the process itself: it crashed, or could not begin
        return found


NOTHING_SELECTED = 5
NO_BYTECODE = "PYTHONDONTWRITEBYTECODE"
"""Hundreds of brokers, commands and Spark workers are started: compiling the package anew costs each of them 0.7 s."""
LAST_WORDS = 60
FILES_LOOKED_AT_AGAIN_MAX = 6
_FAILED = re.compile(r"(?:FAILED|ERROR) (tests/[^:]+\.py)::")
_WORDS = {"passed": "passed", "failed": "failed", "error": "failed", "errors": "failed", "skipped": "skipped"}
_COUNT = re.compile(rf"\b(\d+) ({'|'.join(_WORDS)})\b")
_CLOSING = re.compile(r"(=+ )?\d+ \w+.* in [\d.]+s")


def run(group: Group, options: Sequence[str]) -> Outcome:
    """Print its lines while it goes on, and keep what it says in the end."""
    begun = time.monotonic()
    program = ("nice", "-n", str(group.kind.niceness), sys.executable, "-m", "pytest", "--color=no", *options)
    process = subprocess.Popen(
        (*program, *group.files),
        cwd=ROOT,
        env={name: value for name, value in os.environ.items() if name != NO_BYTECODE},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    assert process.stdout is not None
    with process.stdout as stream:
        said = follow(stream)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    outcome = Outcome(group, process.returncode, time.monotonic() - begun, usage.ru_utime + usage.ru_stime, said)
    say(f"--- {group.name}: {in_words(outcome.counts)} in {outcome.seconds:.0f} s")
    return outcome


def follow(stream: Iterable[str]) -> list[str]:
    """Print the lines about files as they come, and leave out pytest's heading; return what it says in the end."""
    lines: list[str] = []
    end: int | None = None
    heading = False
    for raw in stream:
        line = raw.rstrip("\n")
        lines.append(line)
        if line.startswith("====="):
            heading = "test session starts" in line
            end = len(lines) - 1 if end is None and not heading else end
        elif end is None and not heading and line:
            say(line)
        heading = heading and not line.startswith("collected")
    return lines[-LAST_WORDS:] if end is None else lines[end:]


def run_all(chosen: Sequence[Group], options: Sequence[str]) -> tuple[list[Outcome], bool]:
    """Those of a kind one after the other, as many at once as it allows. Whether it was interrupted is told too."""
    pools = {kind: ThreadPoolExecutor(kind.at_once) for kind in dict.fromkeys(group.kind for group in chosen)}
    running: list[Future[Outcome]] = [pools[group.kind].submit(run, group, options) for group in chosen]
    interrupted = False
    try:
        wait(running)
    except KeyboardInterrupt:  # at the terminal, which told the processes too: they end, and others do not begin
        interrupted = True
    for pool in pools.values():
        pool.shutdown(cancel_futures=True)
    return [done.result() for done in running if not done.cancelled()], interrupted


def second_look(bad: Sequence[Outcome], options: Sequence[str]) -> list[Outcome]:
    """Outcomes of the files with failures when they have the machine for themselves; none if that could not help."""
    if any(not outcome.worth_another_look for outcome in bad):
        return []  # nothing could be run at all
    if sum(len(outcome.failed_files) for outcome in bad) > FILES_LOOKED_AT_AGAIN_MAX:
        return []  # that is no bad luck
    again = [replace(outcome.group, name=f"{outcome.group.name}, again") for outcome in bad]
    for group, outcome in zip(again, bad, strict=True):
        group.files = outcome.worth_another_look
    say("--- once more, one after the other: " + " ".join(file for group in again for file in group.files))
    return [run(group, options) for group in again]


def in_words(counts: Counter[str]) -> str:
    return ", ".join(f"{counts[word]} {word}" for word in ("passed", "failed", "skipped"))


def table(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """The slowest groups first. Processor time is that of all processes that were waited for, which is nearly all."""
    width = max(len(outcome.group.name) for outcome in outcomes)
    yield f"{'group':{width}}  seconds  processor  tests"
    for outcome in sorted(outcomes, key=lambda each: -each.seconds):
        tests = outcome.counts.total()
        yield f"{outcome.group.name:{width}}  {outcome.seconds:7.0f}  {outcome.processor_seconds:9.0f}  {tests:5}"


_saying = threading.Lock()


def say(line: str) -> None:
    with _saying:
        print(line, flush=True)


def main(arguments: Sequence[str]) -> int:
    folders = [argument for argument in arguments if (TESTS / argument).is_dir()]
    options = [argument for argument in arguments if argument not in folders and argument != ONCE]
    begun = time.monotonic()
    outcomes, interrupted = run_all(groups(folders), options)
    if all(outcome.code == NOTHING_SELECTED for outcome in outcomes):
        say("no test was selected")
        return NOTHING_SELECTED
    good = [outcome for outcome in outcomes if outcome.good]
    bad = [outcome for outcome in outcomes if not outcome.good]
    for outcome in good:
        say("\n".join(outcome.said))
    say("")
    say("\n".join(table(outcomes)))
    say(f"{time.monotonic() - begun:.0f} s in all")
    for outcome in bad:  # what failed is read first, so it is printed last
        say("\n".join(outcome.said))
        say(f"{outcome.group.name} failed: exit code {outcome.code}")
    if interrupted:
        say("interrupted: not everything was run")
    looked_at_once = interrupted or not bad or ONCE in arguments
    code = conclude(outcomes, bad, [] if looked_at_once else second_look(bad, options))
    return int(interrupted) or code


def conclude(outcomes: Sequence[Outcome], bad: Sequence[Outcome], again: Sequence[Outcome]) -> int:
    """Say what came of it all; the exit code."""
    counts = sum((outcome.counts for outcome in outcomes), Counter[str]())
    passed_again = bool(again) and all(outcome.good for outcome in again)
    if passed_again:
        say(
            "passed only when they were run again, look at them: "
            + " ".join(f for o in bad for f in o.worth_another_look)
        )
        counts["passed"] += counts.pop("failed")
    for outcome in again:
        if not outcome.good:
            say("\n".join(outcome.said))
            say(f"{outcome.group.name} failed: exit code {outcome.code}")
    say(in_words(counts))
    return int(bool(bad) and not passed_again)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
