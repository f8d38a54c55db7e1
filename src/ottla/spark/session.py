"""A Spark session as Ottla wants it: this Python in the workers, loopback when local, quiet, quick micro-batches."""

import contextlib
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from pyspark import SparkContext
from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession

from ottla.config.java import Candidate, find_java
from ottla.config.memory import memory_bytes
from ottla.model.errors import OttlaError
from ottla.spark.class_archive import archive_options, archive_place, make_when_this_ends
from ottla.spark.home import home_without_zip
from ottla.spark.java import home_for_spark
from ottla.spark.java_options import SHORT_LIVED, Work, default_memory, java_options
from ottla.spark.loggers import quiet_loggers
from ottla.spark.workers.starting import DAEMON, DAEMON_SETTING, PYTHON_VARIABLE, start_nursery, told_to_java

LOCAL_MASTER = "local[*]"

# The default manager of checkpoint files costs about 0.1 s more per micro-batch (measured).
_CHECKPOINT_MANAGER = "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
_LOG_SETTINGS = Path(__file__).with_name("log4j2.properties")
JAVA_OPTIONS_VARIABLE = "OTTLA_JAVA_OPTIONS"
"""More options for Spark's JVM, where there is no `--conf` to say them in."""
_JAVA_OPTIONS = "spark.driver.defaultJavaOptions"
_USERS_JAVA_OPTIONS = "spark.driver.extraJavaOptions"
_MEMORY = "spark.driver.memory"

# Options and settings whose values Spark must not show in plans and configurations, beyond those it hides by itself.
_HIDDEN = r"(?i)secret|password|passwd|token|credential|access[.]?key|api[.]?key|kafka[.](sasl|ssl)[.]"

DEFAULTS: Mapping[str, str] = {
    "spark.sql.session.timeZone": "UTC",
    # Every batch of a query needs the classes of the batch before it; by default only a hundred are kept.
    "spark.sql.codegen.cache.maxEntries": "5000",
    "spark.sql.shuffle.partitions": "4",
    "spark.sql.streaming.checkpointFileManagerClass": _CHECKPOINT_MANAGER,
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    # Spark's default is a type that Parquet has given up, and that other programs read as a time without a zone.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    # Not `extraJavaOptions`: those are the user's, and come after these, so that they win.
    # The deep stack is for Spark itself: to tell interruptions of foreachBatch from failures it matches messages with
    # a regular expression that recurses for each character, and 1 MB is not enough for a long one. Java before 18 takes
    # the character set of the locale, which is ASCII where the one that LANG names is not installed.
    _JAVA_OPTIONS: f'-Xss16m -Dfile.encoding=UTF-8 -Dlog4j2.configurationFile="{_LOG_SETTINGS.as_uri()}"',
    "spark.redaction.regex": _HIDDEN,
    "spark.sql.redaction.options.regex": f"{_HIDDEN}|url",
    "spark.ui.enabled": "false",
    "spark.sql.ui.explainMode": "simple",  # each batch is described for the UI, whether or not there is one
    "spark.ui.showConsoleProgress": "false",
    # Before each operation on a column Python would tell Java the line that it stands in: several calls, and a search
    # for IPython. It took a quarter of what starting a pipeline costs (measured), and the lines are ours.
    "spark.python.sql.dataFrameDebugging.enabled": "false",
}
_LOOPBACK: Mapping[str, str] = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}


class SparkDidNotStart(OttlaError):
    """The JVM ended before it could be talked to."""


def build_session(
    name: str,
    master: str = LOCAL_MASTER,
    conf: Mapping[str, str] | None = None,
    *,
    short_lived: bool = False,
    small_batches: bool = False,
) -> SparkSession:
    """Start Spark, or get the session that runs; `conf` wins over what is set here.

    `short_lived`: it will have little to do: Java should not spend time on making it quick. `small_batches`: it will
    have much to do, of few rows each time.
    """
    os.environ.setdefault(PYTHON_VARIABLE, sys.executable)
    settings = dict(DEFAULTS)
    if master.startswith("local"):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        settings.update(_LOOPBACK)
    starts = SparkContext._gateway is None and "PYSPARK_GATEWAY_PORT" not in os.environ
    java = find_java(os.environ, wanted_by="Spark") if starts else None
    home = home_without_zip(master, conf or {}, os.environ) if starts else None
    if java is not None:
        archive = archive_place(java, os.environ, home)
        make_when_this_ends(archive)
        more = os.environ.get(JAVA_OPTIONS_VARIABLE, "")
        users = f"{more} {(conf or {}).get(_USERS_JAVA_OPTIONS, '')}"
        work = Work.BRIEF if short_lived else Work.SMALL_BATCHES if small_batches else Work.LARGE_BATCHES
        memory = (conf or {}).get(_MEMORY) or default_memory(work, memory_bytes())
        settings[_MEMORY] = memory
        ours = java_options(settings[_JAVA_OPTIONS], archive_options(archive), users, work, memory)
        settings[_JAVA_OPTIONS] = f"{ours} {more}".rstrip()
    nursery = None
    if home is not None and DAEMON_SETTING not in (conf or {}):  # workers are this Python's, and on this machine
        nursery = start_nursery(os.environ)
        settings.update({} if nursery is None else {DAEMON_SETTING: DAEMON})
    settings.update(conf or {})
    builder = SparkSession.builder.appName(name).master(master)
    for key, value in settings.items():
        builder = builder.config(key, value)
    quiet_loggers()
    with _environment_of_a_new_jvm(java, home, told_to_java(nursery)):
        try:
            return builder.getOrCreate()
        except PySparkRuntimeError as error:
            if error.getCondition() != "JAVA_GATEWAY_EXITED":
                raise
            raise SparkDidNotStart(
                "Spark's JVM ended before it was up; what it said is above. Often an option in --conf or in "
                "SPARK_CONF_DIR is the cause; `ottla doctor --spark` tries a session with none."
            ) from error


@contextlib.contextmanager
def _environment_of_a_new_jvm(
    java: Candidate | None, spark_home: Path | None, more: Mapping[str, str]
) -> Iterator[None]:
    """What Spark's scripts need, only while they start: programs started later get the user's environment."""
    if java is None:
        yield
        return
    # The scripts start a small JVM that only says how to start the real one.
    wanted = {
        "JAVA_HOME": str(home_for_spark(java, os.environ)),
        "SPARK_LAUNCHER_OPTS": os.environ.get("SPARK_LAUNCHER_OPTS", SHORT_LIVED),
        **more,
    }
    if spark_home is not None:
        wanted["SPARK_HOME"] = str(spark_home)
    before = {name: os.environ.get(name) for name in wanted}
    os.environ.update(wanted)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
