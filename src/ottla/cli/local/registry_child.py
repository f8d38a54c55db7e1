"""The schema registry beside a broker of `ottla up` and `ottla cluster`: a process of its own, which ends with them.

Whatever a schema costs, the broker's loop does not pay for it; and the registry is the same that runs alone.
"""

import argparse
import re
import subprocess
import sys

from ottla.cli.common.listening import MEANT
from ottla.cli.common.output import CommandError
from ottla.cli.local import secure
from ottla.http.address import BadListener, HttpAddress, is_local, parse_address
from ottla.http.listening import listen
from ottla.model.defaults import REGISTRY_PORT

NO_REGISTRY = "none"
STOP_SECONDS_MAX = 10.0
PROGRAM = (
    "import sys; from ottla.testing.child import end_with_parent; end_with_parent(); "
    "from ottla.cli.main import main; sys.exit(main())"
)
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
    return [sys.executable, "-c", PROGRAM, *options]


class RegistryChild:
    """`why_not` says in words why there is none."""

    def __init__(self, option: str, secured: secure.Secured | None, log_level: str) -> None:
        self.address = wanted(option)
        self.why_not = "" if self.address else f"--registry {NO_REGISTRY}"
        self._secured = secured
        self._log_level = log_level
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"{'http' if self._secured is None else 'https'}://{self.address}"

    def broker_settings(self) -> list[str]:
        return broker_settings(self.address, 1, self._secured)

    def start(self, bootstrap: str) -> None:
        """Where the port is taken the broker runs without a registry, and says so."""
        if self.address is None:
            return
        if self.address.port:
            try:
                listen(self.address, backlog=1).close()
            except BadListener as error:
                self.why_not = str(error)
                return
        self._process = subprocess.Popen(
            command(bootstrap, self.address, self._secured, self._log_level),
            stdin=subprocess.PIPE,  # held open and never written to: its end is how the child knows of ours
            stdout=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C is for us
        )

    def stop(self) -> None:
        process = self._process
        if process is None:
            return
        process.terminate()
        try:
            process.wait(STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(STOP_SECONDS_MAX)
        if process.stdin is not None:
            process.stdin.close()


def registry_lines(child: RegistryChild) -> str:
    if not child.why_not:
        return f"\n  Schema registry: schema.registry.url={child.url}"
    hint = "" if child.address is None else "; choose another port with --registry HOST:PORT"
    return f"\n  No schema registry: {child.why_not}{hint}"
