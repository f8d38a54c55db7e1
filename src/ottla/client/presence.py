"""Does any of these brokers answer? Asked before work begins, so that a wrong address is said in seconds."""

import asyncio
import ipaddress
import socket
from typing import NamedTuple

from ottla.client.cluster import Address, parse_bootstrap
from ottla.client.connection import Connection
from ottla.client.errors import Unreachable
from ottla.client.security import PLAINTEXT, Security
from ottla.model.errors import OttlaError

ANSWER_TIMEOUT_S = 3.0
"""A broker says which versions it serves at once; whoever is silent for so long is not one, or too busy to be used."""


class Absent(NamedTuple):
    """An address of the bootstrap list at which no broker answers."""

    node: int
    """As Kafka's clients number brokers whose id they do not know yet: -1, -2, ... in the order of the list."""
    address: Address
    ip: str | None
    """None where the host has no address."""
    reason: str

    def __str__(self) -> str:
        """The line that Kafka's clients log."""
        if self.ip is None:
            host = self.address.host
            return (
                f"Couldn't resolve server {self.address} from bootstrap.servers as DNS resolution failed for {host} "
                f"({self.reason})"
            )
        return connection_failed(self.node, self.address.host, str(Address(self.ip, self.address.port)), self.reason)


def connection_failed(node: int, host: str, address: str, reason: str) -> str:
    """As Java writes an address: what was asked for, and the `ip:port` that it stands for."""
    name = "" if address.rpartition(":")[0].strip("[]") == host.strip("[]") else host
    place = f"node {node} ({name}/{address})"
    return f"Connection to {place} could not be established. Broker may not be available. ({reason})"


def absent_brokers(
    bootstrap: str, security: Security = PLAINTEXT, timeout_s: float = ANSWER_TIMEOUT_S
) -> tuple[Absent, ...]:
    """Why nobody answers, address by address; empty as soon as one broker does."""
    return asyncio.run(find_absent(parse_bootstrap(bootstrap), security, timeout_s))


async def find_absent(addresses: list[Address], security: Security, timeout_s: float) -> tuple[Absent, ...]:
    asked = [
        asyncio.create_task(_ask(-number, address, security, timeout_s)) for number, address in enumerate(addresses, 1)
    ]
    try:
        for answer in asyncio.as_completed(asked):
            if await answer is None:
                return ()
    finally:
        for task in asked:
            task.cancel()
        await asyncio.gather(*asked, return_exceptions=True)
    return tuple(absent for task in asked if (absent := task.result()) is not None)


async def _ask(node: int, address: Address, security: Security, timeout_s: float) -> Absent | None:
    try:
        async with asyncio.timeout(timeout_s):
            ip = await _ip_of(address)
    except TimeoutError:
        return Absent(node, address, None, f"no answer within {timeout_s:g} s")
    except OSError as error:
        return Absent(node, address, None, error.strerror or str(error))
    try:
        # Versions are told to anybody, so there is no need to say who we are.
        connection = await Connection.open(*address, timeout_s=timeout_s, security=security._replace(sasl=None))
    except Unreachable as error:
        return Absent(node, address, ip, str(error).removeprefix(f"{address}").lstrip(": "))
    except OttlaError:
        return None  # somebody is there; what is wrong with the talk is said by the client that is to follow
    await connection.close()
    return None


async def _ip_of(address: Address) -> str:
    """The address that stands in Kafka's messages: Java prefers IPv4."""
    try:
        return str(ipaddress.ip_address(address.host))
    except ValueError:
        found = await asyncio.get_running_loop().getaddrinfo(*address, type=socket.SOCK_STREAM)
    v4 = [entry for entry in found if entry[0] == socket.AF_INET]
    return str((v4 or found)[0][4][0])
