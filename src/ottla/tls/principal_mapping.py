"""From the name in a client's certificate to the name that rights are given to: ssl.principal.mapping.rules, pure.

`RULE:pattern/replacement/` with an L or a U behind it (lower or upper case), or DEFAULT, which takes the name as it is;
several are separated by commas and the first whose pattern matches the whole name wins. Patterns and replacements are
those of Java: $1 is what the first group matched, and a backslash takes the next character as it is.
"""

import re
from collections.abc import Callable
from typing import NamedTuple

_RULE = re.compile(
    r"\s*(?:(?P<default>DEFAULT)|RULE:(?P<pattern>(?:\\.|[^\\/])*)/(?P<new>(?:\\.|[^\\/])*)/(?P<case>[LU]?))\s*(?:,|$)"
)
_NAMED_GROUP = re.compile(r"\(\?<(?![=!])")  # Java writes (?<name>...) where Python has (?P<name>...)


class BadRules(ValueError):
    """Rules that cannot be read, in words."""


class Rule(NamedTuple):
    pattern: re.Pattern[str] | None
    """None of DEFAULT."""
    replacement: str = ""
    case: str = ""

    def apply(self, name: str) -> str | None:
        """The new name; None if the rule is not for this one."""
        if self.pattern is None:
            return name
        if self.pattern.fullmatch(name) is None:
            return None
        result = self.pattern.sub(_expansion(self.replacement, self.pattern.groups), name)
        return result.lower() if self.case == "L" else result.upper() if self.case == "U" else result


def read_rules(text: str) -> tuple[Rule, ...]:
    """The rules of this text; BadRules says which of them is none."""
    rules: list[Rule] = []
    position = 0
    text = text.strip() or "DEFAULT"
    while position < len(text):
        match = _RULE.match(text, position)
        if match is None:
            raise BadRules(f"{text[position:]!r} is not RULE:pattern/replacement/ with L or U behind it, nor DEFAULT")
        if match["default"]:
            rules.append(Rule(None))
        else:
            rules.append(Rule(_compiled(match["pattern"]), match["new"], match["case"]))
        position = match.end()
    return tuple(rules)


def principal_name(name: str, rules: tuple[Rule, ...]) -> str | None:
    """What the first rule that is for this name makes of it; None if none is."""
    return next((result for rule in rules if (result := rule.apply(name)) is not None), None)


def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(_NAMED_GROUP.sub("(?P<", pattern))
    except re.error as error:
        raise BadRules(f"the pattern {pattern!r} cannot be read: {error}") from None


def _expansion(replacement: str, groups: int) -> Callable[[re.Match[str]], str]:
    """What Java's replaceAll does with this text."""
    parts: list[str | int] = []
    position = 0
    while position < len(replacement):
        letter = replacement[position]
        position += 1
        if letter == "\\" and position < len(replacement):
            parts.append(replacement[position])
            position += 1
        elif letter == "$" and (number := _group_number(replacement[position:], groups)) is not None:
            parts.append(number)
            position += len(str(number))
        else:
            parts.append(letter)
    return lambda match: "".join((match[part] or "") if isinstance(part, int) else part for part in parts)


def _group_number(digits: str, groups: int) -> int | None:
    """As many digits as name a group that there is; a dollar before anything else is just a dollar."""
    number: int | None = None
    for end in range(1, len(digits) + 1):
        if not digits[:end].isascii() or not digits[:end].isdigit() or int(digits[:end]) > groups:
            break
        number = int(digits[:end])
    return number
