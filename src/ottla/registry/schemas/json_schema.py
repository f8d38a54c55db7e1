"""JSON Schema documents, drafts 4 to 2020-12: checked against their metaschema, with every `$ref` leading somewhere."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote, urljoin

from ottla.registry.content import JSON
from ottla.registry.errors import InvalidSchema, TooComplex
from ottla.registry.limits import LIMITS, SchemaLimits
from ottla.registry.schemas.parsed import Referenced, compact, load_json

_DRAFT_DEFAULT = "http://json-schema.org/draft-07/schema#"
_REF_ALONE = ("draft-04", "draft-05", "draft-06", "draft-07")
"""In these drafts what stands beside a `$ref` is ignored."""
_DATA = frozenset({"enum", "const", "default", "examples"})
"""Their values are instances, not schemas."""
_LISTS_OF_SCHEMAS = frozenset({"allOf", "anyOf", "oneOf", "items", "prefixItems"})
_MIXED_MAX = 1000


@dataclass(slots=True)
class JsonSchema:
    document: Any
    others: dict[str, Any] = field(default_factory=dict)
    """Documents of references, by the name that the schema uses and by their own `$id`."""
    anchors: dict[str, Any] = field(default_factory=dict)
    """Parts of the document by `$id` and `$anchor`."""

    @property
    def schema_type(self) -> str:
        return JSON

    @property
    def canonical(self) -> str:
        return compact(self.document)

    def normalized(self) -> str:
        return compact(self.document, sort_keys=True)

    def formatted(self, form: str) -> str:
        return self.canonical

    @property
    def ref_stands_alone(self) -> bool:
        draft = self.document.get("$schema", _DRAFT_DEFAULT) if isinstance(self.document, dict) else _DRAFT_DEFAULT
        return any(name in draft for name in _REF_ALONE)

    def resolve(self, ref: str, home: Any) -> tuple[Any, Any] | None:
        """What a `$ref` in the document `home` means, and the document that it is in; None: nothing."""
        uri, _, fragment = unquote(ref).partition("#")
        if not uri:
            document = home
        elif uri in self.others:
            document = self.others[uri]
        else:
            base = home.get("$id", home.get("id", "")) if isinstance(home, dict) else ""
            whole = _joined(base, uri) if isinstance(base, str) else uri
            found = self.others.get(whole, self.anchors.get(whole, self.anchors.get(uri)))
            if found is None:
                return None
            document = found
        if not fragment:
            return document, document
        if not fragment.startswith("/"):
            found = self.anchors.get(f"#{fragment}")
            return None if found is None else (found, home)
        return _pointed(document, fragment)


def _joined(base: str, uri: str) -> str:
    try:
        return urljoin(base, uri)
    except ValueError:  # neither can be the address of anything
        return uri


def _pointed(document: Any, pointer: str) -> tuple[Any, Any] | None:
    value = document
    for part in pointer[1:].split("/"):
        name = part.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict) and name in value:
            value = value[name]
        elif isinstance(value, list) and name.isdigit() and int(name) < len(value):
            value = value[int(name)]
        else:
            return None
    return value, document


def parse_json_schema(text: str, references: Sequence[Referenced] = (), limits: SchemaLimits = LIMITS) -> JsonSchema:
    found = JsonSchema(_load(text, "Invalid schema", limits))
    for reference in references:
        other = _load(reference.text, f"reference {reference.name}", limits)
        found.others[reference.name] = other
        if isinstance(other, dict) and isinstance(other.get("$id"), str):
            found.others.setdefault(other["$id"].rstrip("#"), other)
    for document in (found.document, *found.others.values()):
        for part in _schemas(document):
            for key in ("$id", "id"):
                if isinstance(part.get(key), str):
                    found.anchors.setdefault(part[key].rstrip("#") or part[key], part)
            if isinstance(part.get("$anchor"), str):
                found.anchors.setdefault(f"#{part['$anchor']}", part)
    for document in (found.document, *found.others.values()):
        for part in _schemas(document):
            ref = part.get("$ref")
            if isinstance(ref, str):
                _check_ref(ref, found.resolve(ref, document))
    return found


def _load(text: str, what: str, limits: SchemaLimits) -> Any:
    document = load_json(text, what, limits)
    if not isinstance(document, dict | bool):
        raise InvalidSchema(f"{what}: a JSON Schema is an object, true or false")
    from jsonschema.exceptions import SchemaError  # noqa: PLC0415 - for those who register such schemas
    from jsonschema.validators import Draft7Validator, validator_for  # noqa: PLC0415

    draft = document.get("$schema", _DRAFT_DEFAULT) if isinstance(document, dict) else _DRAFT_DEFAULT
    if not isinstance(draft, str) or "draft-03" in draft:
        raise InvalidSchema(f"{what}: `$schema` is the URL of a draft from 4 to 2020-12, not {str(draft)[:100]}")
    _check_lists(document, what)
    try:
        validator: Any = validator_for(document, default=Draft7Validator)
        validator.check_schema(document)
    except (OverflowError, ValueError) as error:  # of a pattern's {count}, of a URL
        raise InvalidSchema(f"{what}: {error}") from None
    except SchemaError as error:
        where = "/".join(map(str, error.absolute_path))
        raise InvalidSchema(f"{what}: /{where}: {error.message[:300]}") from None
    return document


def _check_ref(ref: str, target: tuple[Any, Any] | None) -> None:
    if target is None and "json-schema.org/" not in ref:  # those of metaschemas are known to all
        raise InvalidSchema(f"$ref `{ref[:200]}` leads nowhere: it is neither in the schema nor a reference")
    if target is not None and not isinstance(target[0], dict | bool):
        raise InvalidSchema(f"$ref `{ref[:200]}` leads to something that is no schema")


def _check_lists(document: Any, what: str) -> None:
    """That values are different is seen at once where they can be sorted, and one by one where not."""
    for part in _schemas(document):
        for key, value in part.items():
            if isinstance(value, list) and len(value) > _MIXED_MAX and key not in _LISTS_OF_SCHEMAS:
                try:
                    sorted(value)
                except TypeError:
                    raise TooComplex(
                        f"{what}: `{key}` has more than {_MIXED_MAX} values of different types; make it shorter"
                    ) from None


def _schemas(document: Any) -> Iterator[dict[str, Any]]:
    """Every object of a document that may be a schema."""
    waiting = [document]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            yield value
            waiting += [inner for key, inner in value.items() if key not in _DATA]
        elif isinstance(value, list):
            waiting += value
