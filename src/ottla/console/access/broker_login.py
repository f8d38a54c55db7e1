"""Signing in with the broker's own user: name and password are tried on a connection, and then used for all of them."""

import asyncio
from collections.abc import Mapping, Sequence

from ottla.client.cluster import Cluster
from ottla.client.errors import AuthenticationFailed, ClientError, UnsupportedByBroker
from ottla.client.settings import client_settings
from ottla.model.errors import ApiError, OttlaError

MECHANISMS = ("SCRAM-SHA-512", "SCRAM-SHA-256", "PLAIN")
"""Tried in this order: with SCRAM the password does not leave the console."""
SECONDS_MAX = 15.0
_TIMES = {
    "request.timeout.ms": "10000",
    "default.api.timeout.ms": "10000",
    "socket.connection.setup.timeout.ms": "5000",
}
_NAMES_OF_LOGIN = ("sasl.",)


class BrokerAway(OttlaError):
    """Nobody could be asked: the password may be right or wrong."""


def login_settings(base: Mapping[str, str], mechanism: str, name: str, password: str) -> dict[str, str]:
    """What a user's own connections have in place of the console's: security.protocol and everything of SASL."""
    over_tls = base.get("security.protocol", "PLAINTEXT").strip().upper() in {"SSL", "SASL_SSL"}
    return {
        "security.protocol": "SASL_SSL" if over_tls else "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        "sasl.username": name,
        "sasl.password": password,
    }


def merged(base: Mapping[str, str], login: Mapping[str, str] | None) -> dict[str, str]:
    """The settings of a connection for a caller: of the console's own login nothing is left beside theirs."""
    if login is None:
        return dict(base)
    return {name: value for name, value in base.items() if not name.startswith(_NAMES_OF_LOGIN)} | dict(login)


async def try_login(
    base: Mapping[str, str], name: str, password: str, mechanisms: Sequence[str] = MECHANISMS
) -> dict[str, str] | None:
    """Settings of the user's own connections; None if the brokers refuse the password. BrokerAway."""
    if not name or "\x00" in name + password:
        return None
    for mechanism in mechanisms:
        login = login_settings(base, mechanism, name, password)
        if await _is_let_in({**merged(base, login), **_TIMES, "client.id": "ottla-console-sign-in"}):
            return login
    return None


async def _is_let_in(settings: Mapping[str, str]) -> bool:
    try:
        async with asyncio.timeout(SECONDS_MAX), client_settings(settings).cluster() as cluster:
            await _ask(cluster)
    except AuthenticationFailed:
        return False
    except UnsupportedByBroker:
        return False
    except TimeoutError:
        raise BrokerAway(f"no broker answered within {SECONDS_MAX:g} seconds") from None
    except (ApiError, ClientError) as error:
        raise BrokerAway(str(error)) from None
    return True


async def _ask(cluster: Cluster) -> None:
    """Something that everybody may ask who is let in."""
    await cluster.metadata([])
