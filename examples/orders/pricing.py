"""The Python step of the orders pipeline."""

from typing import Any


def with_total(row: dict[str, Any]) -> dict[str, Any]:
    """What the order is worth, in whole cents: sums of those are exact."""
    return {"total_cents": row["quantity"] * row["price_cents"]}
