"""The option by which a read of a topic becomes a table that stays (`kept_table`); apart, because few need the rest."""

from collections.abc import Mapping

OPTION = "lastOfEachKey"


def wants_it(options: Mapping[str, str]) -> bool:
    return any(name.lower() == OPTION.lower() and value == "true" for name, value in options.items())


def without_it(options: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in options.items() if name.lower() != OPTION.lower()}
