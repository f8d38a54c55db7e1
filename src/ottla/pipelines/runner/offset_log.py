"""Which offsets a batch goes up to: Spark writes them to the checkpoint before it runs the batch."""

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from ottla.model.names import TopicPartition
from ottla.pipelines.errors import FatalFailure
from ottla.spark.errors import InvalidOption
from ottla.spark.reading.offsets import StreamOffset, read_checkpointed

_VERSIONS = ("v1", "v2")
_NO_OFFSET = "-"


def offset_log(spark: SparkSession, checkpoint: str, batch_id: int) -> str:
    text = read_text(spark, f"{checkpoint}/offsets/{batch_id}")
    if text is None:
        raise FatalFailure(f"the checkpoint {checkpoint} has no offsets of batch {batch_id}: was it deleted meanwhile?")
    return text


def records_of(text: str, before: str | None) -> int | None:
    """How many offsets a batch of one topic source spans, by its entry in the log and the entry before it; None if they
    do not tell."""
    now, known = _only_stream(text), _only_stream(before) if before is not None else None
    if now is None:
        return None
    begins = {**(known.offsets if known is not None else {}), **now.begins}
    if not begins.keys() >= now.offsets.keys():
        return None
    return sum(max(0, end - begins[partition]) for partition, end in now.offsets.items())


def _only_stream(text: str) -> StreamOffset | None:
    lines = text.splitlines()
    if len(lines) != 3 or lines[0] not in _VERSIONS:  # a version, settings, the one source
        return None
    try:
        return StreamOffset.from_json(json.loads(lines[2]))
    except (InvalidOption, ValueError, AttributeError):
        return None  # the offset of another kind of source


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
    local = Path(location)
    if local.is_absolute() and local.is_file():
        return local.read_text(encoding="utf-8")
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
