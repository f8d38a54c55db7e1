"""What Spark's JVM is started with."""

from ottla.spark.java_options import QUICK_COMPILER, SMALL_COLLECTOR, java_options


def test_a_short_lived_session_compiles_quickly_and_collects_simply() -> None:
    assert java_options("-Xss16m", "", "", short_lived=True) == f"-Xss16m {QUICK_COMPILER} {SMALL_COLLECTOR}"
    assert java_options("-Xss16m", "-Xshare:auto", "-Dx=y", short_lived=False) == "-Xss16m -Xshare:auto"


def test_java_is_never_given_two_collectors() -> None:
    assert SMALL_COLLECTOR not in java_options("", "", "-Xmn64m -XX:+UseG1GC", short_lived=True)
    assert SMALL_COLLECTOR not in java_options("", "", "-XX:+UseZGC", short_lived=True)
    assert SMALL_COLLECTOR in java_options("", "", "-XX:+UseStringDeduplication", short_lived=True)
