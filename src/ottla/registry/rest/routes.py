"""The one table of what is served: method, path, what answers, and the right that it takes."""

from typing import NamedTuple

from ottla.registry.rest import associations, schemas, settings, subjects
from ottla.registry.rest.asking import Handler

READ, WRITE, DELETE, SETTINGS, NOTHING = "read", "write", "delete", "settings", ""
"""What a user may want of a subject; NOTHING is for everybody who is let in."""


class Path(NamedTuple):
    method: str
    path: str
    handler: Handler
    right: str = READ
    writes: bool = False
    """Only the instance that writes answers; others pass it on."""


ROUTES = (
    Path("GET", "", settings.root, NOTHING),
    Path("POST", "", settings.root, NOTHING),
    Path("GET", "subjects", subjects.list_subjects),
    Path("POST", "subjects/{subject}", subjects.look_up),
    Path("DELETE", "subjects/{subject}", subjects.delete_subject, DELETE, writes=True),
    Path("GET", "subjects/{subject}/versions", subjects.list_versions),
    Path("POST", "subjects/{subject}/versions", subjects.register, WRITE, writes=True),
    Path("GET", "subjects/{subject}/versions/{version}", subjects.get_version),
    Path("DELETE", "subjects/{subject}/versions/{version}", subjects.delete_version, DELETE, writes=True),
    Path("GET", "subjects/{subject}/versions/{version}/schema", subjects.get_version_text),
    Path("GET", "subjects/{subject}/versions/{version}/referencedby", subjects.referenced_by),
    Path("GET", "subjects/{subject}/metadata", subjects.latest_with_metadata),
    Path("GET", "schemas", subjects.list_schemas),
    Path("GET", "schemas/types", schemas.types, NOTHING),
    Path("GET", "schemas/ids/{id}", schemas.by_id),
    Path("GET", "schemas/ids/{id}/schema", schemas.text_by_id),
    Path("GET", "schemas/ids/{id}/subjects", schemas.subjects_of_id),
    Path("GET", "schemas/ids/{id}/versions", schemas.versions_of_id),
    Path("GET", "schemas/guids/{guid}", schemas.by_guid),
    Path("GET", "schemas/guids/{guid}/ids", schemas.ids_of_guid),
    Path("POST", "compatibility/subjects/{subject}/versions", schemas.check),
    Path("POST", "compatibility/subjects/{subject}/versions/{version}", schemas.check),
    Path("GET", "config", settings.get_config),
    Path("PUT", "config", settings.put_config, SETTINGS, writes=True),
    Path("DELETE", "config", settings.delete_config, SETTINGS, writes=True),
    Path("GET", "config/{subject}", settings.get_config),
    Path("PUT", "config/{subject}", settings.put_config, SETTINGS, writes=True),
    Path("DELETE", "config/{subject}", settings.delete_config, SETTINGS, writes=True),
    Path("GET", "mode", settings.get_mode),
    Path("PUT", "mode", settings.put_mode, SETTINGS, writes=True),
    Path("DELETE", "mode", settings.delete_mode, SETTINGS, writes=True),
    Path("GET", "mode/{subject}", settings.get_mode),
    Path("PUT", "mode/{subject}", settings.put_mode, SETTINGS, writes=True),
    Path("DELETE", "mode/{subject}", settings.delete_mode, SETTINGS, writes=True),
    Path("GET", "contexts", schemas.list_contexts),
    Path("DELETE", "contexts/{context}", schemas.delete_context, DELETE, writes=True),
    Path("POST", "associations", associations.put, SETTINGS, writes=True),
    Path("PUT", "associations", associations.put, SETTINGS, writes=True),
    Path("POST", "associations:batchGet", associations.get_many),
    Path("POST", "associations:batchMutate", associations.change_many, SETTINGS, writes=True),
    Path("GET", "associations/subjects/{subject}", associations.of_subject),
    Path("GET", "associations/resources/{id}", associations.of_id),
    Path("PUT", "associations/resources/{id}", associations.put, SETTINGS, writes=True),
    Path("DELETE", "associations/resources/{id}", associations.delete, SETTINGS, writes=True),
    Path("GET", "associations/resources/{namespace}/{name}", associations.of_resource),
    Path("GET", "v1/metadata/id", settings.cluster_id, NOTHING),
    Path("GET", "v1/metadata/version", settings.version, NOTHING),
    Path("GET", "v1/metadata/deployment", settings.deployment, NOTHING),
    Path("GET", "version", settings.version, NOTHING),
)


def _sorted() -> dict[tuple[int, str], list[tuple[Path, list[str]]]]:
    """By how many parts a path has and by its first, which is a word in all of them: few are left to be compared."""
    found: dict[tuple[int, str], list[tuple[Path, list[str]]]] = {}
    for path in ROUTES:
        names = path.path.split("/") if path.path else []
        found.setdefault((len(names), names[0] if names else ""), []).append((path, names))
    return found


_SORTED = _sorted()


class Found(NamedTuple):
    path: Path
    params: dict[str, str]


def find(method: str, parts: list[str]) -> Found | list[str]:
    """What answers, or the methods that this path takes: none where there is no such path."""
    allowed: list[str] = []
    fitting: list[Found] = []
    for path, names in _SORTED.get((len(parts), parts[0] if parts else ""), ()):
        params = _match(names, parts)
        if params is not None:
            if path.method == method:
                fitting.append(Found(path, params))
            allowed.append(path.method)
    # A word is meant before a name: schemas/types is no id.
    return min(fitting, key=lambda found: len(found.params)) if fitting else sorted(set(allowed))


def _match(names: list[str], parts: list[str]) -> dict[str, str] | None:
    params: dict[str, str] = {}
    for name, part in zip(names, parts, strict=True):
        if name.startswith("{"):
            params[name[1:-1]] = part
        elif name != part:
            return None
    return params
