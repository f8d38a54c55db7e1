"""How the admin tools reach a cluster: options in, one async function run, errors in words out."""

import argparse
import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeVar

from ottla.cli.common.options import bootstrap_of, client_settings
from ottla.cli.common.output import CommandError
from ottla.client.cluster import Cluster
from ottla.client.errors import ClientError, InvalidSetting, Unreachable
from ottla.client.settings import client_settings as read_settings

T = TypeVar("T")


def run_admin(
    args: argparse.Namespace, work: Callable[[Cluster], Awaitable[T]], *, total_timeout_s: float | None = None
) -> T:
    """Run `work` with a cluster opened as the options say."""
    bootstrap = bootstrap_of(args)
    cluster = open_cluster(bootstrap, client_settings(args), total_timeout_s)

    async def session() -> T:
        async with cluster:
            return await work(cluster)

    try:
        return asyncio.run(session())
    except Unreachable as error:
        raise CommandError(no_broker(bootstrap, error)) from error


def open_cluster(bootstrap: str, settings: Mapping[str, str], total_timeout_s: float | None = None) -> Cluster:
    """A cluster with the settings of a `--command-config` file; what cannot be honoured is refused."""
    try:
        found = read_settings({"client.id": "ottla-admin", **settings, "bootstrap.servers": bootstrap})
    except InvalidSetting as error:
        raise CommandError(f"--command-config: {error}") from None
    if total_timeout_s is not None and "default.api.timeout.ms" not in settings:
        found = found._replace(total_timeout_s=total_timeout_s)
    return found.cluster()


def no_broker(bootstrap: str, error: ClientError) -> str:
    hint = "start one with `ottla up`, or name another with --bootstrap-server"
    return f"no broker answers at {bootstrap} ({error}); {hint}"
