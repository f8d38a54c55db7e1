"""What a pipeline file says. YAML, SQL and Python files all become a `Pipeline`.

Entries of sources, steps and sinks stay mappings here: what they may hold is their connector's or step's own business
(`lint` asks them).
"""

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

Entry = dict[str, Any]

ONLY_PHASE = "main"


class ClusterEntry(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """Brokers with a name, for files that know more than one cluster."""

    bootstrap: str
    client: dict[str, str] = {}


class Phase(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """One part of a pipeline that runs on its own. Phases meet in topics or other places that both know."""

    name: str
    sources: dict[str, Entry] = {}
    tables: dict[str, Entry] = {}
    """Read anew for every batch, to join with. A topic as a table is its latest value per key."""
    steps: list[Entry] = []
    sinks: list[Entry] = []


class Errors(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    retries: int = 3
    """How often in a row a failed query is started again before the pipeline is given up."""
    dead_letter: str | None = None
    """The topic for records that cannot be read, break a rule or fail in a step. None: the first of them stops us."""
    dead_letter_cluster: str | None = None
    """Where that topic is. By default where the query's other topics are."""
    restart: Literal["always", "on-failure", "never"] = "on-failure"
    """`always`: after `retries`, too, with the longest pause; `never`: the first failure is the last."""
    backoff: str = "1 second"
    backoff_max: str = "1 minute"


class Limits(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    trigger: str = "1 second"
    """A new batch so often, if there is anything to do."""
    max_records: int | None = None
    """At most so many records from each source in a batch."""


class Case(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """One test: what each source has, and what must come out."""

    given: dict[str, str | list[Any] | Entry]
    expect: str | list[Any] | dict[str, str | list[Any]] | None = None
    dead_letters: str | list[Any] | None = None
    columns: list[str] | None = None
    """Compare only these."""
    name: str | None = None


class Pipeline(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    name: str
    description: str = ""
    bootstrap: str | None = None
    """The brokers, if the command line names none."""
    client: dict[str, str] = {}
    """Settings of the Kafka client: `security.protocol`, `sasl.username`, ..."""
    clusters: dict[str, ClusterEntry] = {}
    """Other clusters, by the names that topics mean them by (`cluster: east`)."""
    sources: dict[str, Entry] = {}
    tables: dict[str, Entry] = {}
    steps: list[Entry] = []
    sinks: list[Entry] = []
    phases: list[Phase] = []
    errors: Errors = Errors()
    limits: Limits = Limits()
    tests: list[Case] = []
    checkpoints: str | None = None
    """Where Spark keeps checkpoints, if not in the state folder: any file system that Spark can write to."""

    def all_phases(self) -> list[Phase]:
        """The phases; a file without any is one phase. Tables at the top are there for all of them."""
        if not self.phases:
            only = Phase(name=ONLY_PHASE, sources=self.sources, tables=self.tables, steps=self.steps, sinks=self.sinks)
            return [only]
        return [msgspec.structs.replace(phase, tables={**self.tables, **phase.tables}) for phase in self.phases]


def kind_of(entry: Mapping[str, Any], kinds: list[str]) -> str | None:
    """The one key of an entry that names its kind; None if there is none, or more than one."""
    found = [key for key in entry if key in kinds]
    return found[0] if len(found) == 1 else None
