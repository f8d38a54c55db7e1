"""The schema registry beside a broker of `ottla up` and `ottla cluster`: a process of its own, which ends with them.

Whatever a schema costs, the broker's loop does not pay for it; and the registry is the same that runs alone.
"""

import argparse
import re

from ottla.cli.common.listening import MEANT
from ottla.cli.common.output import CommandError
from ottla.cli.local import secure
from ottla.cli.local.beside import ChildBeside, child_command
from ottla.http.address import HttpAddress, is_local, parse_address
from ottla.model.defaults import REGISTRY_PORT

NO_REGISTRY = "none"
ANSWERS = re.compile(r"The schema registry answers on ")


def add_registry(parser: argparse.ArgumentParser, *, more: str = "") -> None:
    parser.add_argument(
        "--registry",
        default=f"127.0.0.1:{REGISTRY_PORT}",
        metavar="HOST:PORT",
        help=f"where the schema registry is served{more}, or {NO_REGISTRY} (default: 127.0.0.1:{REGISTRY_PORT})",
    )


def wanted(option: str) -> HttpAddress | None:
    return None if option == NO_REGISTRY else parse_address(option, "--registry")


def refuse_exposed(address: HttpAddress | None, secured: secure.Secured | None, *, meant: bool) -> None:
    """As the broker's own listeners, and by the same setting."""
    if address is not None and secured is None and not meant and not is_local(address.host):
        raise CommandError(
            f"--registry: {address} is open to other machines, and asks nobody who they are. Listen on 127.0.0.1; or "
            "let users log in (--secure); or, in a network that you trust, say that it is meant: "
            "--set ottla.allow.unauthenticated.listeners=true"
        )


def urls(address: HttpAddress, count: int, secured: secure.Secured | None) -> list[str]:
    """Of registries on ports that follow each other."""
    scheme = "http" if secured is None else "https"
    return [f"{scheme}://{address._replace(port=address.port + offset)}" for offset in range(count)]


def broker_settings(address: HttpAddress | None, count: int, secured: secure.Secured | None) -> list[str]:
    """So that topics can check schemas. The password stays where it is: settings may be seen in lists of processes."""
    if address is None or not address.port:
        return []
    found = [f"confluent.schema.registry.url={','.join(urls(address, count, secured))}"]
    if secured is not None:
        found += [
            f"confluent.basic.auth.user.info={secure.ADMIN}:${{file:{secured.password_file}}}",
            f"confluent.ssl.ca.location={secured.authority}",
        ]
    return found


def command(bootstrap: str, address: HttpAddress, secured: secure.Secured | None, log_level: str) -> list[str]:
    options = ["registry", "--bootstrap-server", bootstrap, "--listen", str(address), "--log-level", log_level]
    if secured is None:
        options.append(MEANT)  # or it would not have come to this
    else:
        options += ["--command-config", str(secured.client_properties), "--keystore", str(secured.broker_keys)]
        options += ["--truststore", str(secured.authority), "--login", secure.MECHANISM, "--authorize"]
        options += ["--super-users", f"User:{secure.ADMIN}"]
    return child_command(options)


class RegistryChild(ChildBeside):
    def __init__(self, option: str, secured: secure.Secured | None, log_level: str) -> None:
        super().__init__(wanted(option), f"--registry {NO_REGISTRY}", secured, log_level)

    def broker_settings(self) -> list[str]:
        return broker_settings(self.address, 1, self._secured)

    def start(self, bootstrap: str) -> None:
        if self.address is not None:
            self.run(command(bootstrap, self.address, self._secured, self._log_level))


def registry_lines(child: RegistryChild) -> str:
    return child.said("Schema registry: schema.registry.url=", "schema registry", "--registry")
