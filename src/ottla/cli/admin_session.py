"""How the admin tools reach a cluster: options in, one async function run, errors in words out."""

import argparse
import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeVar

from ottla.cli.options import bootstrap_of, client_settings
from ottla.cli.output import CommandError
from ottla.client.cluster import Cluster
from ottla.client.errors import ClientError, Unreachable

T = TypeVar("T")

_MILLISECONDS = {"request.timeout.ms": "request_timeout_s", "default.api.timeout.ms": "total_timeout_s"}


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
    timeouts = {} if total_timeout_s is None else {"total_timeout_s": total_timeout_s}
    client_id = "ottla-admin"
    for name, value in settings.items():
        if name in _MILLISECONDS:
            if not value.isdigit():
                raise CommandError(f"--command-config: {name}={value} is not a number of milliseconds")
            timeouts[_MILLISECONDS[name]] = int(value) / 1000
        elif name == "client.id":
            client_id = value
        elif name == "security.protocol" and value != "PLAINTEXT":
            raise CommandError(
                f"--command-config: security.protocol={value}: the admin tools speak PLAINTEXT only so far"
            )
        elif name not in ("bootstrap.servers", "security.protocol"):
            known = ", ".join(["client.id", *_MILLISECONDS, "security.protocol=PLAINTEXT"])
            raise CommandError(f"--command-config: the admin tools have no setting {name}; they know {known}")
    return Cluster(bootstrap, client_id=client_id, **timeouts)


def no_broker(bootstrap: str, error: ClientError) -> str:
    hint = "start one with `ottla up`, or name another with --bootstrap-server"
    return f"no broker answers at {bootstrap} ({error}); {hint}"
