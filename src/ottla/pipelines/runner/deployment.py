"""One pipeline at one place: its plan, its brokers, its folder, and the version of its outputs."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ottla.pipelines.parts import CheckedPipeline
from ottla.pipelines.plan import Plan, QueryPlan
from ottla.pipelines.secrets import Secrets

SMALL_RECORDS = 20_000
"""A batch of no more is written by the driver: a shuffle, and tasks that write, would cost more than they spread."""


@dataclass(frozen=True, kw_only=True)
class Deployment:
    plan: Plan
    secrets: Secrets
    bootstrap: str
    bootstrap_from: str = "--bootstrap-server"
    """Which option, file or variable names the brokers, for messages."""
    folder: Path
    """The pipeline's own folder in the state folder."""
    version: str | None = None
    """A second set of outputs beside the first, made by reprocessing; None for the first."""

    @property
    def checked(self) -> CheckedPipeline:
        return self.plan.checked

    def client(self, cluster: str | None) -> Mapping[str, str]:
        """Kafka client settings with their secrets, without the brokers. Only who connects needs them."""
        spec = self.checked.spec
        client = spec.client if cluster is None else spec.clusters[cluster].client
        self.secrets.learn(client)
        filled: dict[str, str] = self.secrets.fill_in(client)
        return filled

    def brokers(self, cluster: str | None) -> str:
        """Of a cluster that the file names, or of the pipeline's own."""
        return self.bootstrap if cluster is None else self.checked.spec.clusters[cluster].bootstrap

    def brokers_from(self, cluster: str | None) -> str:
        return self.bootstrap_from if cluster is None else f"`clusters.{cluster}` in the file"

    def kafka(self, cluster: str | None) -> dict[str, str]:
        return {**self.client(cluster), "bootstrap.servers": self.brokers(cluster)}

    @property
    def has_small_batches(self) -> bool:
        """Whether the limits keep them so small that most of a batch is Spark's planning, and not work on rows."""
        most = self.checked.spec.limits.max_records
        return most is not None and most <= SMALL_RECORDS

    @property
    def version_folder(self) -> Path:
        return self.folder if self.version is None else self.folder / "versions" / self.version

    def query_name(self, query: QueryPlan) -> str:
        """How Spark calls it."""
        return ".".join([self.plan.name, query.name, *([self.version] if self.version else [])])

    def checkpoint(self, query: QueryPlan) -> str:
        place = self.checked.spec.checkpoints
        if place is None:
            return str(self.version_folder / "checkpoints" / query.name)
        words = [place.rstrip("/"), self.plan.name, *([self.version] if self.version else []), query.name]
        return "/".join(words)
