"""Options of Spark's JVM by what a session is for. What the user says comes after them, and wins."""

import re
from enum import Enum

# Started with these and with its classes in an archive, a session costs a fifth of the processor time (measured).
# With the quick compiler alone Java has room for 48 MB of code by default, which Spark's generated classes outgrow.
QUICK_COMPILER = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m"
SMALL_COLLECTOR = "-XX:+UseSerialGC"
SHORT_LIVED = f"{QUICK_COMPILER} {SMALL_COLLECTOR} -Xshare:auto"

# The slow compiler looks at a method when it was called four times as often as by default: what batches are made of
# gets there within a dozen of them, and what only the start needs does not take their processor (measured: batches of
# 16 and of 5,000 rows take 0.73x and 0.60x of what they take with the quick compiler alone).
PATIENT_COMPILER = (
    "-XX:Tier4InvocationThreshold=20000 -XX:Tier4MinInvocationThreshold=3000 -XX:Tier4CompileThreshold=50000 "
    "-XX:Tier4BackEdgeThreshold=150000"
)
# Batches of many rows want to be over soon, and nobody waits in between: no barriers in every write to the heap.
BUSY_COLLECTOR = "-XX:+UseParallelGC"

_HEAP = re.compile(r"\d+[kmg]", re.IGNORECASE)
_COLLECTOR = re.compile(r"-XX:\+Use\w*GC\b")


class Work(Enum):
    """What a session will have to do: how Java compiles, and how it collects garbage."""

    BRIEF = (QUICK_COMPILER, SMALL_COLLECTOR)
    """A command: Java should not spend time on making it quick."""
    SMALL_BATCHES = (PATIENT_COMPILER, SMALL_COLLECTOR)
    """The same few rows' work again and again, for hours."""
    LARGE_BATCHES = (PATIENT_COMPILER, BUSY_COLLECTOR)


GIBIBYTE = 1 << 30
MEMORY_SHARE = 8
MEMORY_GIBIBYTES_MAX = 4


def default_memory(work: Work, all_bytes: int) -> str:
    """Of the driver's heap, where nobody said: Spark's own gigabyte; for large batches an eighth of what there is, if
    that is more. A batch of 500,000 rows filled nine tenths of a gigabyte, which Java collected again and again.
    """
    if work is not Work.LARGE_BATCHES:
        return "1g"
    share = (all_bytes + GIBIBYTE * MEMORY_SHARE // 2) // (GIBIBYTE * MEMORY_SHARE)
    return f"{min(max(share, 1), MEMORY_GIBIBYTES_MAX)}g"


def java_options(always: str, archive: str, users: str, work: Work, memory: str) -> str:
    """All but the user's own in one text. Java does not start with two collectors, so one that the user names is it.

    Large batches will need all the `memory` there is. A heap that has it from the start does not stop to grow: of a
    batch of 500,000 rows that was a second in fifteen (measured).
    """
    compiler, collector = work.value
    ours = [always, archive, compiler, "" if _COLLECTOR.search(users) else collector]
    if work is Work.LARGE_BATCHES and _HEAP.fullmatch(memory) and "-Xms" not in users:
        ours.append(f"-Xms{memory}")
    return " ".join(text for text in ours if text)
