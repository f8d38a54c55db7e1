"""The part of `ottla doctor` that looks at Spark: its Java, its scripts, the kernel of the data source, a tiny job."""

import importlib.metadata
import os
import re
import shutil
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from ottla.cli.local.doctor_checks import Finding, State, fail, ok, warn
from ottla.model.errors import OttlaError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import pyarrow as pa

SPARK_CORE = re.compile(r"spark-core_[\d.]+-(?P<version>[\d.]+.*)\.jar")
JOB_ROWS = 1_000


def spark_installed() -> bool:
    try:
        importlib.metadata.version("pyspark")
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


def check_java(environment: Mapping[str, str]) -> Finding:
    from ottla.config.java import HOW_TO_GET_ONE, JAVA_VERSION_MIN, examine

    *passed_over, last = examine(environment)
    if not last.usable:
        looked = "; ".join(f"{place.origin} {place.problem}" for place in [*passed_over, last])
        return fail("java", f"no Java {JAVA_VERSION_MIN} or newer: {looked}", HOW_TO_GET_ONE)
    found = f"Java {last.version} from {last.origin}, {last.executable}"
    chosen = environment.get("JAVA_HOME")
    if chosen and last.origin != "JAVA_HOME":
        mend = "set JAVA_HOME to a Java that Spark can use, or unset it"
        return warn("java", f"{found}, because JAVA_HOME {passed_over[0].problem}", mend)
    return ok("java", found)


def check_scripts(environment: Mapping[str, str]) -> Finding:
    """Spark starts its JVM with bash, from the package or from where SPARK_HOME says."""
    bash = shutil.which("bash", path=environment.get("PATH", ""))
    if bash is None:
        return fail("Spark's scripts", "there is no bash on PATH, and they are written for it", "install bash")
    home = environment.get("SPARK_HOME")
    installed = importlib.metadata.version("pyspark")
    if not home:
        return ok("Spark's scripts", f"those of the package pyspark {installed}")
    names = os.listdir(Path(home, "jars")) if Path(home, "jars").is_dir() else []
    there = next((found["version"] for found in map(SPARK_CORE.fullmatch, names) if found), None)
    mend = "unset SPARK_HOME, or set it to a Spark of the same version as the package pyspark"
    if there is None:
        return fail("Spark's scripts", f"SPARK_HOME is {home}, where there is no Spark", mend)
    if there != installed:
        return fail("Spark's scripts", f"SPARK_HOME is {home}, Spark {there}; the package pyspark is {installed}", mend)
    return ok("Spark's scripts", f"those of SPARK_HOME, {home}")


def check_kernel() -> Finding:
    """Which code turns records into Arrow columns."""
    from ottla.spark.kernel.choice import VARIABLE, chosen_kernel
    from ottla.spark.kernel.twin import TwinKernel

    try:
        chosen = chosen_kernel()
    except OttlaError as error:
        return fail("kernel", str(error), f"unset {VARIABLE}, or set it to python")
    if not isinstance(chosen, TwinKernel):
        return ok("kernel", "compiled")
    found = "records are read and written by the twin in Python, which is slower"
    if os.environ.get(VARIABLE) == "python":
        return warn("kernel", f"{found}, because {VARIABLE} asks for it", f"unset {VARIABLE}")
    return warn("kernel", found, "install a C compiler (Debian: apt install gcc) and install ottla again")


def check_session(master: str) -> Finding:
    """Start Spark and send a thousand rows through a Python worker and back."""
    from pyspark.errors import PySparkException

    from ottla.spark.session import build_session

    def double(batches: "Iterable[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
        import pyarrow as pa
        import pyarrow.compute as pc

        for batch in batches:
            yield pa.RecordBatch.from_arrays([pc.multiply(batch.column(0), 2)], ["id"])

    begun = time.monotonic()
    try:
        session = build_session("ottla doctor", master, {"spark.driver.memory": "512m"}, short_lived=True)
        try:
            started = time.monotonic()
            rows = session.range(JOB_ROWS).mapInArrow(double, "id long")
            total = sum(row.id for row in rows.collect())
        finally:
            session.stop()
    except (PySparkException, OttlaError) as error:
        said = str(error).splitlines()
        return fail(
            "Spark session",
            f"a tiny job failed: {said[0] if said else type(error).__name__}",
            "run it again with OTTLA_SPARK_LOG_LEVEL=warn to see what Spark says",
        )
    assert total == JOB_ROWS * (JOB_ROWS - 1), total
    took = time.monotonic()
    return ok("Spark session", f"started in {started - begun:.1f} s, a tiny job took {took - started:.1f} s ({master})")


def session_not_tried() -> Finding:
    return Finding(check="Spark session", state=State.SKIPPED, found="not tried; --spark runs a tiny job (15 s)")
