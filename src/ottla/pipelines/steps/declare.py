"""What a function of a `python` step can say about itself, so that the pipeline file need not.

from ottla.pipelines.steps.declare import adds

@adds("country STRING")
def add_country(row: dict) -> dict:
    return {"country": lookup(row["item"])}
"""

from collections.abc import Callable
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

SCHEMA_ATTRIBUTE = "__ottla_schema__"
ADDS_ATTRIBUTE = "__ottla_adds__"


def returns(schema: str) -> Callable[[F], F]:
    """The function's rows have exactly these columns: `@returns("id STRING, total DOUBLE")`."""
    return _marked(SCHEMA_ATTRIBUTE, schema)


def adds(schema: str) -> Callable[[F], F]:
    """The function's rows have the input's columns and these, new or replaced: `@adds("country STRING")`."""
    return _marked(ADDS_ATTRIBUTE, schema)


def _marked(attribute: str, schema: str) -> Callable[[F], F]:
    def mark(function: F) -> F:
        setattr(function, attribute, schema)
        return function

    return mark
