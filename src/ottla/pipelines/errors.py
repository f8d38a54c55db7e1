"""What can be wrong with a pipeline. All of it is shown to people: a message says what to do."""

from ottla.model.errors import OttlaError


class PipelineError(OttlaError):
    """Base of the tree."""


class InvalidPipeline(PipelineError):
    """The file cannot work as it is written. `problems` lists every reason, each with its place in the file."""

    def __init__(self, path: str, problems: list[str]) -> None:
        self.path = path
        self.problems = problems
        super().__init__(f"{path}: " + ("\n" + "\n".join(f"  - {problem}" for problem in problems)).rstrip())


class ConnectorProblem(PipelineError):
    """A system refused, or cannot do what was asked."""


class BadRecord(PipelineError):
    """A record failed and the pipeline has no dead-letter topic."""


class FatalFailure(PipelineError):
    """Trying again cannot help; the message says what can."""
