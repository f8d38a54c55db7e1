"""/associations: which subject a topic has its schemas in."""

from collections.abc import Mapping
from typing import Any

from ottla.registry import associations
from ottla.registry.errors import Code, RegistryError, subject_not_found
from ottla.registry.rest.asking import Asked, Parts
from ottla.registry.subjects import in_context

REQUESTS_AT_ONCE_MAX = 1000


async def of_resource(asked: Asked) -> Any:
    found = associations.find(
        asked.registry.state,
        namespace=asked.params["namespace"],
        name=asked.params["name"],
        kind=asked.text("resourceType") or None,
        types=asked.texts("associationType"),
    )
    return _page(asked, found)


async def of_id(asked: Asked) -> Any:
    kind, kinds = asked.text("resourceType") or None, asked.texts("associationType")
    return _page(asked, associations.find_by_id(asked.registry.state, asked.params["id"], kind, kinds))


async def of_subject(asked: Asked) -> Any:
    kind, kinds = asked.text("resourceType") or None, asked.texts("associationType")
    found = associations.find_by_subject(asked.registry.state, asked.own_subject)
    return _page(asked, [each for each in found if associations.is_meant(each, kind, kinds)])


def _page(asked: Asked, found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    lifecycle = asked.text("lifecycle")
    return asked.page([each for each in found if not lifecycle or each["lifecycle"] == lifecycle])


async def put(asked: Asked) -> Any:
    """POST makes one, PUT also changes one; a schema that comes with it is registered first."""
    body = await asked.body()
    told = asked.params.get("id")
    if told is not None and body.setdefault("resourceId", told) != told:
        raise RegistryError(Code.INVALID_ASSOCIATION, f"resourceId is {told} in the path and another in the body")
    return await _put(asked, body, create_only=asked.request.method == "POST")


async def _put(asked: Asked, body: Mapping[str, Any], *, create_only: bool) -> dict[str, Any]:
    state = asked.registry.state
    answer, _ = associations.put(state, body, create_only=create_only)
    if asked.flag("dryRun"):
        return answer
    for given, made in zip(body["associations"], answer["associations"], strict=True):
        if given.get("schema"):
            if not isinstance(given["schema"], dict):
                raise RegistryError(Code.INVALID_SCHEMA, "`schema` of an association is an object as for registering")
            subject = in_context(asked.context, made["subject"])
            version = await asked.registry.register(subject, given["schema"], normalize=bool(given.get("normalize")))
            made["schema"] = {**version.content.document(), "id": version.schema_id, "version": version.version}
        elif not state.versions(made["subject"]):
            raise subject_not_found(made["subject"])
    await asked.write(lambda: associations.put(state, body, create_only=create_only))
    return answer


async def delete(asked: Asked) -> Any:
    kind, kinds = asked.text("resourceType") or None, asked.texts("associationType")
    await _delete(asked, asked.params["id"], kind, kinds)
    return None


async def _delete(asked: Asked, resource_id: str, kind: str | None, kinds: list[str]) -> None:
    state = asked.registry.state
    if asked.flag("dryRun"):
        associations.delete(state, resource_id, kind, kinds)
    else:
        await asked.write(lambda: (None, associations.delete(state, resource_id, kind, kinds)))


# Several at once: each has its own result, or error.


async def get_many(asked: Asked) -> Any:
    results = []
    for each in await _requests(asked):
        found = associations.find_any(asked.registry.state, each)
        resource = {key: each[key] for key in associations.RESOURCE_KEY if each.get(key) is not None}
        results.append({"result": {**resource, "associations": found}})
    return Parts({"results": results})


async def change_many(asked: Asked) -> Any:
    results = []
    for each in await _requests(asked):
        try:
            results.append({"result": await _changed(asked, each)})
        except RegistryError as error:
            results.append({"error": {"error_code": error.code, "message": str(error)}})
    return Parts({"results": results})


async def _changed(asked: Asked, request: Mapping[str, Any]) -> dict[str, Any]:
    resource = {key: request[key] for key in associations.RESOURCE_KEY if request.get(key) is not None}
    answer: dict[str, Any] = {**resource, "associations": []}
    for each in associations.operations(request):
        if each["opType"] == "DELETE":
            kinds = [each["associationType"]] if each.get("associationType") else []
            await _delete(asked, str(resource.get("resourceId", "")), resource.get("resourceType"), kinds)
        else:
            body = {**resource, "associations": [each]}
            made = await _put(asked, body, create_only=each["opType"] == "CREATE")
            answer["associations"] += made["associations"]
    return answer


async def _requests(asked: Asked) -> list[dict[str, Any]]:
    given = (await asked.body()).get("requests")
    if not isinstance(given, list) or not given or not all(isinstance(each, dict) for each in given):
        raise RegistryError(Code.INVALID_ASSOCIATION, "`requests` is a list of objects, and not empty")
    if len(given) > REQUESTS_AT_ONCE_MAX:
        raise RegistryError(Code.INVALID_ASSOCIATION, f"`requests` has at most {REQUESTS_AT_ONCE_MAX}")
    return given
