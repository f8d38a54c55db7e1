"""The console beside `ottla up` and `ottla cluster`: a process of its own, so that no page costs a broker's loop."""

import argparse
import re
from collections.abc import Sequence

from ottla.cli.local import secure
from ottla.cli.local.beside import ChildBeside, child_command
from ottla.http.address import HttpAddress, parse_address
from ottla.model.defaults import CONSOLE_PORT

NO_CONSOLE = "none"
ANSWERS = re.compile(r"The console is at ")


def add_console(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--console",
        default=f"127.0.0.1:{CONSOLE_PORT}",
        metavar="HOST:PORT",
        help=f"where the console for browsers is served, or {NO_CONSOLE} (default: 127.0.0.1:{CONSOLE_PORT})",
    )


def wanted(option: str) -> HttpAddress | None:
    return None if option == NO_CONSOLE else parse_address(option, "--console")


def command(
    bootstrap: str, address: HttpAddress, registry: str, metrics: Sequence[str], secured: secure.Secured | None,
    log_level: str,
) -> list[str]:  # fmt: skip
    """`registry`: its URL, or nothing; `metrics`: of each broker, ID=URL. A secured cluster lets in its own users."""
    options = ["console", "--bootstrap-server", bootstrap, "--listen", str(address), "--log-level", log_level]
    if registry:
        options += ["--registry", registry]
    options += [part for each in metrics for part in ("--metrics", each)]
    if secured is not None:
        options += ["--command-config", str(secured.client_properties), "--keystore", str(secured.broker_keys)]
        options += ["--broker-login"]
        if registry:
            options += ["--registry-user", secure.ADMIN, "--registry-password-file", str(secured.password_file)]
            options += ["--registry-ca", str(secured.authority)]
    return child_command(options)


class ConsoleChild(ChildBeside):
    def __init__(self, option: str, secured: secure.Secured | None, log_level: str) -> None:
        super().__init__(wanted(option), f"--console {NO_CONSOLE}", secured, log_level)

    def start(self, bootstrap: str, registry: str, metrics: Sequence[str]) -> None:
        if self.address is not None:
            self.run(command(bootstrap, self.address, registry, metrics, self._secured, self._log_level))


def console_lines(child: ConsoleChild) -> str:
    return child.said("Console, in a browser: ", "console", "--console")
