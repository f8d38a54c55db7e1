"""Brokers: who they are, what each holds and leads, their disks and settings."""

import asyncio
from typing import Any

from ottla.client import admin
from ottla.client.admin import ConfigSource, Resource, ResourceType
from ottla.console.asking import Ask, Done, NotThere
from ottla.console.commands import command
from ottla.console.measured import together
from ottla.console.pages.configs import Setting, settings_of
from ottla.console.releases import speaks
from ottla.model.errors import OttlaError


async def list_brokers(ask: Ask) -> dict[str, Any]:
    found = await ask.snapshot()
    alive = [row.broker for row in found.brokers if row.alive]
    times = await ask.console.listeners.times(ask.watched.settings.metrics)
    return {
        "requests": together(each.requests for each in times),
        "listeners": len(times),
        "failures": [each.error for each in times if each.error],
        "items": list(found.brokers),
        "speaks": dict(zip(alive, await asyncio.gather(*(_speaks(ask, each) for each in alive)), strict=True)),
        "controller": found.controller_id,
        "_most": {
            "leaders": max((row.leaders for row in found.brokers), default=0),
            "replicas": max((row.replicas for row in found.brokers), default=0),
            "size_bytes": max((row.size_bytes for row in found.brokers), default=0),
        },
        "racks": sorted({row.rack for row in found.brokers if row.rack}),
        "_command": command(ask, "kafka-broker-api-versions"),
    }


async def _speaks(ask: Ask, broker: int) -> str:
    """It says so when a connection is opened, and that is kept."""
    try:
        connection = await ask.watched.cluster.connection(broker)
    except OttlaError:
        return ""
    return speaks({key: served.max_version for key, served in connection.versions.items()})


async def show(ask: Ask) -> dict[str, Any]:
    found = await ask.snapshot()
    number = ask.names["broker"]
    row = next((row for row in found.brokers if str(row.broker) == number), None)
    if row is None:
        raise NotThere(f"there is no broker {number}")
    settings: list[Setting] = []
    if row.alive:
        resource = Resource(ResourceType.BROKER, number)
        told = await admin.describe_configs(ask.watched.cluster, [resource])
        settings = settings_of(told[resource])
    own = [each for each in ask.watched.settings.metrics if each.broker == number]
    times = await ask.console.listeners.times(own)
    only_set = "all" not in ask.fields
    return {
        "broker": row,
        "speaks": await _speaks(ask, row.broker) if row.alive else "",
        "requests": together(each.requests for each in times),
        "listeners": len(times),
        "failures": [each.error for each in times if each.error],
        "directories": [each for each in found.disks.directories if each.broker == row.broker],
        "settings": [each for each in settings if not only_set or each.source != ConfigSource.DEFAULT_CONFIG.name],
        "settings_all": len(settings),
        "_only_set": only_set,
        "_change": command(
            ask,
            "kafka-configs",
            "--alter",
            "--entity-type",
            "brokers",
            "--entity-name",
            number,
            "--add-config",
            "NAME=VALUE",
        ),
        "_command": command(ask, "kafka-configs", "--describe", "--entity-type", "brokers", "--entity-name", number),
    }


async def change_setting(ask: Ask) -> Done:
    number = ask.names["broker"]
    name = ask.fields.need("name", "the name of a setting")
    value = ask.fields.get("value")
    resource = Resource(ResourceType.BROKER, "" if ask.fields.get("all_brokers") else number)
    if ask.fields.get("reset"):
        await admin.alter_configs(ask.watched.cluster, resource, delete=[name])
        words = f"{name} of broker {number} is its default again"
    else:
        await admin.alter_configs(ask.watched.cluster, resource, add={name: value})
        words = f"{name} of broker {number} is {value}"
    return Done(words, ask.link(f"/brokers/{number}"), {"name": name}, f"broker {number}")
