"""A pipeline over all of history as one batch: the same file, the same steps, static frames."""

import dataclasses
import uuid
from collections.abc import Mapping

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from ottla.model.errors import OttlaError
from ottla.model.names import TopicPartition
from ottla.pipelines.errors import FatalFailure
from ottla.pipelines.runner.batches import BatchWork, Counters, source_context
from ottla.pipelines.runner.deployment import Deployment
from ottla.pipelines.runner.failures import judge
from ottla.pipelines.runner.topics import prepare_topics


class _RunNotes:
    """Every run over history is another one: it is never taken for the replay of an earlier one."""

    def __init__(self) -> None:
        self._identity = f"history.{uuid.uuid4()}"

    def identity(self, spark: SparkSession) -> str:
        return self._identity

    def records(self, spark: SparkSession, batch_id: int) -> int | None:
        return None

    def offsets(self, spark: SparkSession, batch_id: int) -> Mapping[TopicPartition, int]:
        return {}


def run_history(deployment: Deployment, spark: SparkSession) -> dict[str, Counters]:
    """What each query wrote. Queries run one after the other, so that a phase finds what the one before it wrote."""
    prepare_topics(deployment)
    counted: dict[str, Counters] = {}
    for query in deployment.plan.queries:
        # Not the live stream's own names: taking its transactional id would fence it off.
        own = dataclasses.replace(
            query, group=f"{query.group}.history", transactional_id=f"{query.transactional_id}.history"
        )
        work = BatchWork(own, deployment, _RunNotes())
        try:
            sources = {
                name: part.open(deployment.secrets).table(source_context(deployment, spark, part))
                for name, part in query.sources.items()
            }
            work.run_over(spark, sources, 0)
        except (OttlaError, PySparkException) as error:
            raise _in_words(error, deployment) from None  # its own text may hold secrets
        counted[query.name] = work.counters
    return counted


def _in_words(error: Exception, deployment: Deployment) -> FatalFailure:
    return FatalFailure(deployment.secrets.hide(judge(f"{type(error).__name__}: {error}").message))
