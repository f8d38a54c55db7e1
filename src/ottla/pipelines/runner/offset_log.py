"""Which offsets a batch goes up to: Spark writes them to the checkpoint before it runs the batch."""

from collections.abc import Callable, Iterable
from typing import Any

from pyspark.sql import SparkSession

from ottla.model.names import TopicPartition
from ottla.pipelines.errors import FatalFailure
from ottla.spark.errors import InvalidOption
from ottla.spark.offsets import read_checkpointed

_VERSIONS = ("v1", "v2")
_NO_OFFSET = "-"


def batch_offsets(
    spark: SparkSession, checkpoint: str, batch_id: int, is_ours: Callable[[str], bool]
) -> dict[TopicPartition, int]:
    """Where each partition of the query's topics stands behind this batch."""
    text = read_text(spark, f"{checkpoint}/offsets/{batch_id}")
    if text is None:
        raise FatalFailure(f"the checkpoint {checkpoint} has no offsets of batch {batch_id}: was it deleted meanwhile?")
    return parse_offset_log(text, is_ours)


def parse_offset_log(text: str, is_ours: Callable[[str], bool]) -> dict[TopicPartition, int]:
    """A version, a line of settings, then a line for each source, in an order that only the plan knows.

    So ours are those with the topics that we read. Where two sources read one topic, the one that is behind counts.
    """
    lines = text.splitlines()
    if not lines or lines[0] not in _VERSIONS:
        raise FatalFailure(f"the checkpoint's offsets are of a version that is not known here: {lines[:1]}")
    offsets: dict[TopicPartition, int] = {}
    for found in _lines_of_topics(lines[2:], is_ours):
        for partition, offset in found.items():
            offsets[partition] = min(offset, offsets.get(partition, offset))
    return offsets


def _lines_of_topics(lines: Iterable[str], is_ours: Callable[[str], bool]) -> Iterable[dict[TopicPartition, int]]:
    for line in lines:
        if line == _NO_OFFSET:
            continue
        try:
            found = read_checkpointed(line)
        except (InvalidOption, ValueError, AttributeError):
            continue  # the offset of another kind of source
        if all(is_ours(partition.topic) for partition in found):
            yield found


def read_text(spark: SparkSession, location: str) -> str | None:
    """A small file on any file system that Spark knows; None if it is not there."""
    jvm: Any = spark.sparkContext._jvm
    path = jvm.org.apache.hadoop.fs.Path(location)
    system = path.getFileSystem(spark._jsparkSession.sessionState().newHadoopConf())
    if not system.exists(path):
        return None
    stream = system.open(path)
    try:
        return bytes(jvm.org.apache.commons.io.IOUtils.toByteArray(stream)).decode()
    finally:
        stream.close()
