"""One pipeline at one place: its plan, its brokers, its folder, and the version of its outputs."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ottla.pipelines.parts import CheckedPipeline
from ottla.pipelines.plan import Plan, QueryPlan
from ottla.pipelines.secrets import Secrets


@dataclass(frozen=True, kw_only=True)
class Deployment:
    plan: Plan
    secrets: Secrets
    bootstrap: str
    folder: Path
    """The pipeline's own folder in the state folder."""
    version: str | None = None
    """A second set of outputs beside the first, made by reprocessing; None for the first."""

    @property
    def checked(self) -> CheckedPipeline:
        return self.plan.checked

    @property
    def client(self) -> Mapping[str, str]:
        """Kafka client settings with their secrets, without the brokers. Only who connects needs them."""
        self.secrets.learn(self.checked.spec.client)
        filled: dict[str, str] = self.secrets.fill_in(self.checked.spec.client)
        return filled

    @property
    def kafka(self) -> dict[str, str]:
        return {**self.client, "bootstrap.servers": self.bootstrap}

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
