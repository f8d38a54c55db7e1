"""Does every instance of the old JSON Schema fit the new one? Decided by the documents alone, and rather no than yes.

| old → new (STRICT) | ok |
|---|---|
| a limit loosened or removed; integer → number; a type or an enum value added; anything → `true` | yes; reverse no |
| another type; title, description, default, format | no; ignored |
| a property added | what covered it before (open: anything) fits it; LENIENT: optional, or with a default |
| a property removed | what covers it now takes it (open: anything is taken); LENIENT: always |
| required added | with a default; removed: yes |
| additionalProperties narrowed | LENIENT only; items: never |
| oneOf, anyOf: a branch added / removed | yes / no; allOf the other way round; branches are paired off |
| plain → anyOf or oneOf with it; oneOf or allOf → anyOf | yes |

Open: additionalProperties is true or absent. Branches of a oneOf are taken to exclude each other, as Confluent's rules
take them: that an added branch takes nothing that another one takes is for the author to see to.
"""

from typing import Any

from ottla.registry.compatibility.findings import Finding, Work
from ottla.registry.compatibility.json_limits import (
    ARRAY_LIMITS,
    KEYWORDS,
    NUMBER_LIMITS,
    OBJECT_LIMITS,
    STRING_LIMITS,
    limit_findings,
    types_of,
)
from ottla.registry.compatibility.json_patterns import matches
from ottla.registry.compatibility.json_shapes import Shapes
from ottla.registry.compatibility.matching import all_matched
from ottla.registry.schemas.json_schema import JsonSchema

STRICT, LENIENT = "STRICT", "LENIENT"


def check_json_schema(
    new: JsonSchema, old: JsonSchema, work: Work | None = None, *, lenient: bool = False
) -> list[Finding]:
    """Empty: what was valid is valid."""
    return _Checker(old, new, work or Work(), lenient=lenient).check(old.document, new.document, "")


class _Checker:
    def __init__(self, old: JsonSchema, new: JsonSchema, work: Work, *, lenient: bool) -> None:
        self._old, self._new = old, new
        self._work = work
        self._lenient = lenient
        self._known: dict[tuple[int, int], list[Finding]] = {}
        self._shapes = Shapes()

    def check(self, old: Any, new: Any, path: str) -> list[Finding]:
        self._work.step()
        old, new = self._target(old, self._old), self._target(new, self._new)
        key = (id(old), id(new))
        known = self._known.get(key)
        if known is None:
            self._known[key] = []
            known = self._known[key] = self._compare(old, new, path)
        return known

    def fits(self, old: Any, new: Any) -> bool:
        return not self.check(old, new, "")

    def _target(self, document: Any, schema: JsonSchema) -> Any:
        """Behind a `$ref` that stands alone, however many follow each other; a ring of them is no schema at all."""
        for _ in range(100):
            document = self._shapes.understood(document)
            if not isinstance(document, dict) or "$ref" not in document:
                return document
            if not schema.ref_stands_alone and _constraints(document) - {"$ref"}:
                return document
            found = schema.resolve(document["$ref"], schema.document)
            if found is None:
                return document
            document = found[0]
        return True

    def _compare(self, old: Any, new: Any, path: str) -> list[Finding]:
        if old is False or new is True or (isinstance(new, dict) and not _constraints(new)):
            return []
        if new is False:
            return [Finding("TYPE_NARROWED", path, "nothing is valid any more")]
        old = {} if old is True else old
        found = self._base(old, new, path)
        if found and self._implied_by_branches(old, new):
            found = []
        return found + self._combined(old, new, path)

    def _implied_by_branches(self, old: dict[str, Any], new: dict[str, Any]) -> bool:
        """What the old one's branches say may be what the new one asks for."""
        for key in ("anyOf", "oneOf"):
            branches = [self._target(branch, self._old) for branch in old.get(key, [])]
            if branches and all(branch is False or not self._base(_whole(branch), new, "") for branch in branches):
                return True
        every = [self._target(branch, self._old) for branch in _all_of(old, self._old)]
        return any(branch is False or not self._base(_whole(branch), new, "") for branch in every)

    def _base(self, old: dict[str, Any], new: dict[str, Any], path: str) -> list[Finding]:
        self._work.step()
        were, are = types_of(old), types_of(new)
        found = _type_findings(were, are, path)
        found += _enum_findings(old, new, path)
        if "number" in were or "integer" in were:
            found += limit_findings(NUMBER_LIMITS, old, new, path)
        if "string" in were:
            found += limit_findings(STRING_LIMITS, old, new, path)
        if "array" in were:
            found += limit_findings(ARRAY_LIMITS, old, new, path) + self._items(old, new, path)
        if "object" in were:
            found += limit_findings(OBJECT_LIMITS, old, new, path) + self._objects(old, new, path)
        for key in ("if", "$dynamicRef", "$recursiveRef"):
            same = all(old.get(each) == new.get(each) for each in (key, "then", "else"))
            if key in new and not same:
                found.append(Finding("CONDITION_CHANGED", f"{path}/{key}", f"`{key}` is new or was changed"))
        return found

    # Objects.

    def _objects(self, old: dict[str, Any], new: dict[str, Any], path: str) -> list[Finding]:
        found: list[Finding] = []
        for name in dict.fromkeys([*old.get("properties", {}), *new.get("properties", {})]):
            found += self._property(name, old, new, f"{path}/properties/{name}")
        found += self._uncovered(old, new, path)
        required = new.get("required", [])
        before = set(old.get("required", []))
        for name in required if isinstance(required, list) else []:
            own = self._target(new.get("properties", {}).get(name), self._new)
            if name not in before and not (isinstance(own, dict) and "default" in own):
                text = f"property {name} is required now and has no default"
                found.append(Finding("REQUIRED_ATTRIBUTE_ADDED", f"{path}/required/{name}", text))
        if "propertyNames" in new:
            found += self.check(old.get("propertyNames", True), new["propertyNames"], f"{path}/propertyNames")
        return found + self._dependencies(old, new, path)

    def _property(self, name: str, old: dict[str, Any], new: dict[str, Any], path: str) -> list[Finding]:
        added, removed = name not in old.get("properties", {}), name not in new.get("properties", {})
        if self._lenient and removed:
            return []
        if self._lenient and added:
            own = self._target(new["properties"][name], self._new)
            has_default = isinstance(own, dict) and "default" in own
            if name not in new.get("required", []) or has_default:
                return []
        self._work.step(len(old.get("patternProperties", {})) + len(new.get("patternProperties", {})))
        before, now = _covered_by(name, old, new), _covering(name, new, old)
        found: list[Finding] = []
        for wanted in now:
            if not any(self.fits(given, wanted) for given in before):
                found += self._property_finding(name, before, wanted, path, added=added, removed=removed)
        return found

    def _property_finding(
        self, name: str, before: list[Any], wanted: Any, path: str, *, added: bool, removed: bool
    ) -> list[Finding]:
        if added and any(given is True for given in before):
            text = f"property {name} was added to an open model: it may have held anything; LENIENT would allow it"
            return [Finding("PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL", path, text)]
        if added:
            text = f"property {name} was added and does not take all that was valid under its name"
            return [Finding("PROPERTY_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL", path, text)]
        if removed and wanted is False:
            text = f"property {name} was removed from a closed model, which refuses it now"
            return [Finding("PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL", path, text)]
        if removed:
            text = f"property {name} was removed, and what covers it now does not take all that it held"
            return [Finding("PROPERTY_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL", path, text)]
        return self.check(before[0], wanted, path)

    def _uncovered(self, old: dict[str, Any], new: dict[str, Any], path: str) -> list[Finding]:
        """Properties that nobody named: patterns, and what is left for additionalProperties."""
        found: list[Finding] = []
        patterns, patterns_before = new.get("patternProperties", {}), old.get("patternProperties", {})
        rest, rest_before = _rest_of_object(new), _rest_of_object(old)
        for pattern, wanted in patterns.items():
            sources = (
                [patterns_before[pattern]] if pattern in patterns_before else [rest_before, *patterns_before.values()]
            )
            if not all(self.fits(source, wanted) for source in sources):
                text = f"properties that match {pattern} are narrower than they were"
                found.append(Finding("PATTERN_PROPERTY_NARROWED", f"{path}/patternProperties/{pattern}", text))
        if self._lenient:
            return found
        left = [schema for pattern, schema in patterns_before.items() if pattern not in patterns]
        if not all(self.fits(source, rest) for source in [rest_before, *left]):
            kind = "REMOVED" if rest is False else "NARROWED"
            text = "additional properties are refused now" if rest is False else "additional properties are narrower"
            found.append(Finding(f"ADDITIONAL_PROPERTIES_{kind}", f"{path}/additionalProperties", text))
        return found

    def _dependencies(self, old: dict[str, Any], new: dict[str, Any], path: str) -> list[Finding]:
        found: list[Finding] = []
        for key in ("dependencies", "dependentRequired", "dependentSchemas"):
            before = old.get(key, {})
            for name, wanted in new.get(key, {}).items():
                given = before.get(name)
                if isinstance(wanted, list):
                    loosened = isinstance(given, list) and set(wanted) <= set(given)
                else:
                    loosened = given is not None and not isinstance(given, list) and self.fits(given, wanted)
                if not loosened:
                    text = f"what property {name} asks for is more than it was"
                    found.append(Finding("DEPENDENCY_EXTENDED", f"{path}/{key}/{name}", text))
        return found

    # Arrays.

    def _items(self, old: dict[str, Any], new: dict[str, Any], path: str) -> list[Finding]:
        (first, rest), (first_before, rest_before) = _items_of(new), _items_of(old)
        found: list[Finding] = []
        for number in range(max(len(first), len(first_before))):
            before = first_before[number] if number < len(first_before) else rest_before
            found += self.check(before, first[number] if number < len(first) else rest, f"{path}/items/{number}")
        found += self.check(rest_before, rest, f"{path}/items")
        if "contains" in new:
            same = all(old.get(key) == new.get(key) for key in ("minContains", "maxContains"))
            if not same or "contains" not in old or not self.fits(old["contains"], new["contains"]):
                found.append(Finding("CONTAINS_NARROWED", f"{path}/contains", "`contains` is new or was changed"))
            elif "maxContains" in new and not self.fits(new["contains"], old["contains"]):
                found.append(Finding("CONTAINS_EXTENDED", f"{path}/contains", "more items count against maxContains"))
        return found

    # Combinations.

    def _combined(self, old: dict[str, Any], new: dict[str, Any], path: str) -> list[Finding]:
        found: list[Finding] = []
        every, every_before = _all_of(new, self._new), _all_of(old, self._old)
        left = [branch for branch in every if not self.fits(old, branch)] if every else []
        if left and not all_matched(left, every_before, lambda wanted, given: self.fits(given, wanted)):
            text = "allOf asks for more than it did"
            found.append(Finding("PRODUCT_TYPE_EXTENDED", f"{path}/allOf", text))
        for key, sources in (("anyOf", ("anyOf", "oneOf", "allOf")), ("oneOf", ("oneOf",))):
            if key in new and not self._chosen(old, new[key], sources):
                text = f"{key} does not take all that was valid: a branch was removed or narrowed"
                found.append(Finding("SUM_TYPE_NARROWED", f"{path}/{key}", text))
        if "not" in new and not ("not" in old and self._reverse_fits(new["not"], old["not"])):
            found.append(Finding("NOT_TYPE_EXTENDED", f"{path}/not", "`not` refuses more than it did"))
        return found

    def _chosen(self, old: dict[str, Any], branches: list[Any], sources: tuple[str, ...]) -> bool:
        for key in sources:
            before = old.get(key)
            if before and all_matched(before, branches, self.fits):
                return True
        return any(self.fits(old, branch) for branch in branches)

    def _reverse_fits(self, new: Any, old: Any) -> bool:
        """What is refused now was refused before."""
        return not _Checker(self._new, self._old, self._work, lenient=False).check(new, old, "")


def _constraints(document: dict[str, Any]) -> set[str]:
    return {key for key in document if key in KEYWORDS}


def _whole(branch: Any) -> dict[str, Any]:
    return branch if isinstance(branch, dict) else {}


def _all_of(document: dict[str, Any], schema: JsonSchema) -> list[Any]:
    """Its allOf, and a `$ref` that has neighbours."""
    found = list(document.get("allOf", []))
    if isinstance(document.get("$ref"), str):
        target = schema.resolve(document["$ref"], schema.document)
        found += [target[0]] if target else []
    return found


def _covering(name: str, new: dict[str, Any], old: dict[str, Any]) -> list[Any]:
    """The schemas that a property of this name has to fit now, with those that it may have to fit."""
    found, unsure = _covers(name, new, old)
    return [*(found or [_rest_of_object(new)]), *unsure]


def _covered_by(name: str, old: dict[str, Any], new: dict[str, Any]) -> list[Any]:
    """The schemas that a property of this name fitted for certain."""
    found, unsure = _covers(name, old, new)
    return found or ([True] if unsure else [_rest_of_object(old)])


def _covers(name: str, document: dict[str, Any], other: dict[str, Any]) -> tuple[list[Any], list[Any]]:
    """By its own name and by patterns, and by patterns that cannot be understood. One that both schemas have matches
    in both or in neither, and was compared by itself."""
    found = [document["properties"][name]] if name in document.get("properties", {}) else []
    unsure = []
    for pattern, schema in document.get("patternProperties", {}).items():
        matched = matches(pattern, name)
        if matched:
            found.append(schema)
        elif matched is None and pattern not in other.get("patternProperties", {}):
            unsure.append(schema)
    return found, unsure


def _rest_of_object(document: dict[str, Any]) -> Any:
    return document.get("additionalProperties", document.get("unevaluatedProperties", True))


def _items_of(document: dict[str, Any]) -> tuple[list[Any], Any]:
    """Schemas of the first items, and of all others."""
    if "prefixItems" in document:
        return document["prefixItems"], document.get("items", document.get("unevaluatedItems", True))
    items = document.get("items", document.get("unevaluatedItems", True))
    return (items, document.get("additionalItems", True)) if isinstance(items, list) else ([], items)


def _type_findings(were: frozenset[str], are: frozenset[str], path: str) -> list[Finding]:
    lost = sorted(were - are - ({"integer"} if "number" in are else set()))
    if not lost:
        return []
    kind = "TYPE_NARROWED" if were & are or (lost == ["number"] and "integer" in are) else "TYPE_CHANGED"
    return [Finding(kind, f"{path}/type", f"{', '.join(lost)} was valid and is not any more")]


def _enum_findings(old: dict[str, Any], new: dict[str, Any], path: str) -> list[Finding]:
    now, before = _values(new), _values(old)
    if now is None:
        return []
    if before is None:
        return [Finding("ENUM_ARRAY_NARROWED", f"{path}/enum", "only certain values are valid now")]
    known = {_key(value) for value in now}
    lost = [value for value in before if _key(value) not in known]
    if not lost:
        return []
    return [Finding("ENUM_ARRAY_NARROWED", f"{path}/enum", f"not valid any more: {str(lost[:10])[1:-1]}")]


def _values(document: dict[str, Any]) -> list[Any] | None:
    if "const" in document:
        return [document["const"]]
    return document.get("enum")


def _key(value: Any) -> Any:
    """Equal for values that are equal in JSON: 1 is 1.0, and not true."""
    if isinstance(value, dict):
        return (dict, frozenset((name, _key(inner)) for name, inner in value.items()))
    if isinstance(value, list):
        return (list, tuple(map(_key, value)))
    return (type(value) if isinstance(value, bool) else None, value)
