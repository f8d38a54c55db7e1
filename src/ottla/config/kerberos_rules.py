"""From a Kerberos principal to the name of a user: sasl.kerberos.principal.to.local.rules, as in Kafka. Pure.

RULE:[n:format](pattern)s/from/to/g/L    of principals with n components: $0 is the realm, $1, $2 are the components;
                                         only if the pattern matches all of it; what is replaced in it; L or U
DEFAULT                                  the first component, of principals of the broker's own realm
"""

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

DEFAULT = "DEFAULT"
_RULE = re.compile(
    r"RULE:\[(?P<components>\d+):(?P<format>[^\]]*)\](?:\((?P<match>[^)]*)\))?"
    r"(?:s/(?P<source>[^/]*)/(?P<target>[^/]*)/(?P<everywhere>g)?)?/?(?P<case>[LU])?"
)
_PRINCIPAL = re.compile(r"(?P<primary>[^/@]+)(?:/(?P<host>[^/@]+))?@(?P<realm>[^/@]+)")


class BadRule(ValueError):
    """What is wrong with a rule."""


class Rule(NamedTuple):
    components: int = 0
    format: str = ""
    match: re.Pattern[str] | None = None
    source: re.Pattern[str] | None = None
    target: str = ""
    everywhere: bool = False
    case: str = ""
    is_default: bool = False


def read_rules(texts: Iterable[str]) -> tuple[Rule, ...]:
    """BadRule."""
    return tuple(_read(text.strip()) for text in texts if text.strip())


def _read(text: str) -> Rule:
    if text == DEFAULT:
        return Rule(is_default=True)
    found = _RULE.fullmatch(text)
    if found is None:
        raise BadRule(f"{text!r} is neither DEFAULT nor RULE:[n:format](pattern)s/from/to/g/L")
    try:
        match = re.compile(found["match"]) if found["match"] is not None else None
        source = re.compile(found["source"]) if found["source"] is not None else None
        # Java writes what was found as $1 where Python has \g<1>.
        target = re.sub(r"\$(\d)", r"\\g<\1>", (found["target"] or "").replace("\\", "\\\\"))
        if source is not None:
            for group in re.findall(r"\\g<(\d)>", target):
                if int(group) > source.groups:
                    raise BadRule(f"{text!r}: the pattern has no group {group}")
    except re.error as error:
        raise BadRule(f"{text!r}: {error}") from None
    if any(int(number) > int(found["components"]) for number in re.findall(r"\$(\d)", found["format"])):
        raise BadRule(f"{text!r}: the format names a component that such principals do not have")
    return Rule(
        int(found["components"]), found["format"], match, source, target, bool(found["everywhere"]), found["case"] or ""
    )


def local_name(principal: str, rules: Sequence[Rule], own_realm: str) -> str | None:
    """The name that the first rule has for a principal; None if none has one, or if it is no simple name."""
    found = _PRINCIPAL.fullmatch(principal)
    if found is None:
        return None
    parts = [found["realm"], found["primary"], *([found["host"]] if found["host"] is not None else [])]
    for rule in rules:
        name = _applied(rule, parts, own_realm)
        if name is not None:
            return None if not name or re.search(r"[/@]", name) else name
    return None


def _applied(rule: Rule, parts: Sequence[str], own_realm: str) -> str | None:
    if rule.is_default:
        return parts[1] if parts[0] == own_realm else None
    if len(parts) - 1 != rule.components:
        return None
    base = re.sub(r"\$(\d)", lambda number: parts[int(number[1])], rule.format)
    if rule.match is not None and rule.match.fullmatch(base) is None:
        return None
    name = base if rule.source is None else rule.source.sub(rule.target, base, count=0 if rule.everywhere else 1)
    return {"L": name.lower(), "U": name.upper()}.get(rule.case, name)
