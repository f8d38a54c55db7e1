"""What Spark's JVM is started with."""

from ottla.spark.java_options import (
    BUSY_COLLECTOR,
    GIBIBYTE,
    PATIENT_COMPILER,
    QUICK_COMPILER,
    SMALL_COLLECTOR,
    Work,
    default_memory,
    java_options,
)


def test_a_short_lived_session_compiles_quickly_and_collects_simply() -> None:
    assert java_options("-Xss16m", "", "", Work.BRIEF, "1g") == f"-Xss16m {QUICK_COMPILER} {SMALL_COLLECTOR}"


def test_a_session_for_batches_waits_with_the_slow_compiler_and_collects_by_their_size() -> None:
    small = java_options("-Xss16m", "-Xshare:auto", "-Dx=y", Work.SMALL_BATCHES, "1g")
    assert small == f"-Xss16m -Xshare:auto {PATIENT_COMPILER} {SMALL_COLLECTOR}"
    assert java_options("", "", "", Work.LARGE_BATCHES, "2g") == f"{PATIENT_COMPILER} {BUSY_COLLECTOR} -Xms2g"


def test_a_heap_begins_as_large_as_it_may_become_unless_the_user_says_otherwise() -> None:
    assert "-Xms1G" in java_options("", "", "", Work.LARGE_BATCHES, "1G").split()
    assert "-Xms" not in java_options("", "", "-Xms64m", Work.LARGE_BATCHES, "1g")
    assert "-Xms" not in java_options("", "", "", Work.LARGE_BATCHES, "1 gb")  # Spark can read it, Java cannot


def test_java_is_never_given_two_collectors() -> None:
    assert SMALL_COLLECTOR not in java_options("", "", "-Xmn64m -XX:+UseG1GC", Work.BRIEF, "1g")
    assert SMALL_COLLECTOR not in java_options("", "", "-XX:+UseZGC", Work.BRIEF, "1g")
    assert SMALL_COLLECTOR in java_options("", "", "-XX:+UseStringDeduplication", Work.BRIEF, "1g")


def test_large_batches_get_an_eighth_of_the_machine_within_bounds() -> None:
    def gibibytes(machine: float, work: Work = Work.LARGE_BATCHES) -> str:
        return default_memory(work, int(machine * GIBIBYTE))

    assert [gibibytes(size) for size in (2, 8, 11.9, 16, 23.5, 64, 512)] == ["1g", "1g", "1g", "2g", "3g", "4g", "4g"]
    assert gibibytes(512, Work.SMALL_BATCHES) == gibibytes(512, Work.BRIEF) == "1g"
