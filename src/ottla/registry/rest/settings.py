"""/config and /mode, of everybody, of a context and of a subject; and what the registry says of itself."""

from typing import Any

from ottla import __version__
from ottla.registry import decisions
from ottla.registry.compatibility.levels import DEFAULT_LEVEL
from ottla.registry.rest.asking import Asked
from ottla.registry.state import shown_config


async def get_config(asked: Asked) -> Any:
    state, subject = asked.registry.state, asked.own_subject
    if "subject" in asked.params and subject not in state.configs and not asked.flag("defaultToGlobal"):
        raise decisions.config_not_found(subject)
    found = state.config(subject) if asked.flag("defaultToGlobal") else state.configs.get(subject, {})
    return {"compatibilityLevel": DEFAULT_LEVEL, **shown_config(found)} if _shows_level(asked, found) else found


def _shows_level(asked: Asked, found: dict[str, Any]) -> bool:
    return "compatibilityLevel" in found or "subject" not in asked.params or asked.flag("defaultToGlobal")


async def put_config(asked: Asked) -> Any:
    body, subject = await asked.body(), asked.own_subject

    def decide() -> Any:
        config, record = decisions.set_config(asked.registry.state, subject, body)
        return config, [record]

    config = await asked.write(decide)
    named = {("compatibility" if key == "compatibilityLevel" else key): value for key, value in config.items()}
    return {key: value for key, value in named.items() if key in body or key == "compatibility"}


async def delete_config(asked: Asked) -> Any:
    subject = asked.own_subject

    def decide() -> Any:
        config, record = decisions.delete_config(asked.registry.state, subject)
        return config, [record]

    config = await asked.write(decide)
    return {"compatibilityLevel": DEFAULT_LEVEL, **config} if "subject" not in asked.params else config


async def get_mode(asked: Asked) -> Any:
    state, subject = asked.registry.state, asked.own_subject
    if "subject" in asked.params and subject not in state.modes and not asked.flag("defaultToGlobal"):
        raise decisions.mode_not_found(subject)
    return {"mode": state.mode(subject)}


async def put_mode(asked: Asked) -> Any:
    body, subject, force = await asked.body(), asked.own_subject, asked.flag("force")

    def decide() -> Any:
        mode, record = decisions.set_mode(asked.registry.state, subject, body.get("mode"), force=force)
        return mode, [record]

    return {"mode": await asked.write(decide)}


async def delete_mode(asked: Asked) -> Any:
    subject, recursive = asked.own_subject, asked.flag("recursive")
    mode = await asked.write(lambda: decisions.delete_mode(asked.registry.state, subject, recursive=recursive))
    return {"mode": mode}


async def root(asked: Asked) -> Any:
    return {}


async def version(asked: Asked) -> Any:
    return {"version": __version__, "commitId": f"ottla-{__version__}"}


async def deployment(asked: Asked) -> Any:
    """What operators have said about where it runs: nothing."""
    return {"attributes": []}


async def cluster_id(asked: Asked) -> Any:
    cluster = asked.registry.cluster
    if cluster.cluster_id is None:
        await cluster.retrying(lambda: cluster.metadata([]))
    return {
        "scope": {
            "path": [],
            "clusters": {"kafka-cluster": cluster.cluster_id or "", "schema-registry-cluster": "schema-registry"},
        }
    }
