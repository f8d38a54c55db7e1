"""What can be done to topics: make, set, grow, empty, delete. Settings are compared with what is there before."""

from typing import Any

from ottla.client import admin, offsets
from ottla.client.admin import BROKER_DEFAULT, Resource, ResourceType
from ottla.client.offsets import LowWatermark
from ottla.console.asking import Ask, BadInput, Done
from ottla.console.commands import command
from ottla.console.pages.configs import Setting, settings_of
from ottla.console.pages.topics import topic_row
from ottla.model.error_words import in_words
from ottla.model.names import TopicPartition, check_topic_name


async def new(ask: Ask) -> dict[str, Any]:
    """The form, with the brokers' number in it."""
    found = await ask.snapshot()
    return {"brokers": len(found.look.brokers), "_fields": ask.fields.mapping()}


async def create(ask: Ask) -> Done:
    name = ask.fields.need("name", "the topic's name")
    check_topic_name(name)
    if not ask.caller.sees(name):
        raise BadInput(f"topics with a name such as {name} are not yours to see, so you cannot make them")
    partitions = ask.fields.integer("partitions", BROKER_DEFAULT, least=-1)
    factor = ask.fields.integer("replication", BROKER_DEFAULT, least=-1)
    configs = read_settings(ask.fields.get("settings"))
    dry = bool(ask.fields.get("validate"))
    await admin.create_topic(
        ask.watched.cluster,
        name,
        partitions=partitions,
        replication_factor=factor,
        configs=configs,
        validate_only=dry,
    )
    done = f"topic {name} could be created: nothing is wrong with it" if dry else f"topic {name} is created"
    return Done(done, ask.link("/topics/new" if dry else f"/topics/{name}"), {"topic": name}, name)


def read_settings(text: str) -> dict[str, str]:
    """Lines of `name=value`."""
    found = {}
    for line in text.splitlines():
        if not line.strip():
            continue
        name, equals, value = line.partition("=")
        if not equals or not name.strip():
            raise BadInput(f"settings are lines of name=value, not `{line.strip()}`")
        found[name.strip()] = value.strip()
    return found


async def settings_form(ask: Ask) -> dict[str, Any]:
    """All settings with their defaults; with `name` and `value`, what would change."""
    name = ask.names["topic"]
    topic_row(await ask.snapshot(), name)
    settings = await _settings(ask, name)
    wanted = _wanted(ask, settings)
    changes = [
        {"name": each.name, "old": each.value, "new": wanted[each.name], "default": each.default}
        for each in settings
        if each.name in wanted
    ]
    return {
        "topic": name,
        "settings": settings,
        "changes": changes,
        "_command": _alter_command(ask, name, wanted) if changes else None,
    }


async def _settings(ask: Ask, topic: str) -> list[Setting]:
    resource = Resource(ResourceType.TOPIC, topic)
    return settings_of((await admin.describe_configs(ask.watched.cluster, [resource]))[resource])


def _wanted(ask: Ask, settings: list[Setting]) -> dict[str, str | None]:
    """Fields `set.NAME`; an empty one means the default. What is as it was is left out."""
    wanted: dict[str, str | None] = {}
    for each in settings:
        key = f"set.{each.name}"
        if key not in ask.fields:
            continue
        value = ask.fields.get(key).strip()
        if not value and each.own:
            wanted[each.name] = None
        elif value and value != (each.value or ""):
            wanted[each.name] = value
    return wanted


def _alter_command(ask: Ask, topic: str, wanted: dict[str, str | None]) -> str:
    added = ",".join(
        f"{name}=[{value}]" if "," in value else f"{name}={value}"
        for name, value in wanted.items()
        if value is not None
    )
    deleted = ",".join(name for name, value in wanted.items() if value is None)
    words = ["--alter", "--entity-type", "topics", "--entity-name", topic]
    words += ["--add-config", added] if added else []
    words += ["--delete-config", deleted] if deleted else []
    return command(ask, "kafka-configs", *words)


async def change_settings(ask: Ask) -> Done:
    name = ask.names["topic"]
    wanted = _wanted(ask, await _settings(ask, name))
    if not wanted:
        raise BadInput("nothing would change: every setting has that value already")
    await admin.alter_configs(
        ask.watched.cluster,
        Resource(ResourceType.TOPIC, name),
        add={key: value for key, value in wanted.items() if value is not None},
        delete=[key for key, value in wanted.items() if value is None],
    )
    words = ", ".join(
        f"{key}={value}" if value is not None else f"{key} back to its default" for key, value in wanted.items()
    )
    return Done(f"{name}: {words}", ask.link(f"/topics/{name}"), {"changed": wanted}, name)


async def grow(ask: Ask) -> Done:
    name = ask.names["topic"]
    count = ask.fields.integer("partitions", least=1)
    await admin.create_partitions(ask.watched.cluster, name, count)
    return Done(f"topic {name} has {count} partitions", ask.link(f"/topics/{name}"), {"partitions": count}, name)


async def delete_records(ask: Ask) -> Done:
    """Below an offset of one partition, or (offset -1) all that there is, of one or of all."""
    name = ask.names["topic"]
    ask.fields.confirmed(name, "delete records of the topic")
    found = await ask.snapshot()
    topic_row(found, name)
    text = ask.fields.get("partition").strip()
    numbers = [ask.fields.integer("partition", least=0)] if text else list(found.numbers[name])
    before = ask.fields.integer("offset", -1, least=-1)
    if before >= 0 and not text:
        raise BadInput("an offset belongs to one partition: say which")
    told = await offsets.delete_records(ask.watched.cluster, {TopicPartition(name, each): before for each in numbers})
    refused = {at: each for at, each in told.items() if not isinstance(each, LowWatermark)}
    if refused:
        at, code = next(iter(refused.items()))
        raise BadInput(f"{at}: {in_words(code)}")
    starts = {str(at.partition): each.offset for at, each in told.items() if isinstance(each, LowWatermark)}
    words = f"records of {name} are deleted in {len(starts)} partition{'s' if len(starts) > 1 else ''}"
    return Done(words, ask.link(f"/topics/{name}"), {"first_offsets": starts}, name)


async def delete(ask: Ask) -> Done:
    name = ask.names["topic"]
    ask.fields.confirmed(name, "delete the topic with everything in it")
    await admin.delete_topic(ask.watched.cluster, name)
    return Done(f"topic {name} is deleted", ask.link("/topics"), {}, name)


async def manage(ask: Ask) -> dict[str, Any]:
    """The page with everything that grows, empties or deletes the topic."""
    name = ask.names["topic"]
    found = await ask.snapshot()
    row = topic_row(found, name)
    return {
        "topic": row,
        "readers": list(found.readers.get(name, ())),
        "_commands": {
            "grow": command(ask, "kafka-topics", "--alter", "--topic", name, "--partitions", str(row.partitions + 1)),
            "empty": command(ask, "kafka-delete-records", "--offset-json-file", "offsets.json"),
            "delete": command(ask, "kafka-topics", "--delete", "--topic", name),
        },
    }
