"""The console beside `ottla up` and `ottla cluster`: a process of its own, so that no page costs a broker's loop."""

import argparse
import re
import subprocess
import sys
from collections.abc import Sequence

from ottla.cli.local import secure
from ottla.cli.local.registry_child import PROGRAM, STOP_SECONDS_MAX
from ottla.http.address import BadListener, HttpAddress, parse_address
from ottla.http.listening import listen
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
    return [sys.executable, "-c", PROGRAM, *options]


def why_not(address: HttpAddress) -> str:
    """Why the address cannot be listened on; empty if it can."""
    if not address.port:
        return ""
    try:
        listen(address, backlog=1).close()
    except BadListener as error:
        return str(error)
    return ""


class ConsoleChild:
    """`why_not` says in words why there is none."""

    def __init__(self, option: str, secured: secure.Secured | None, log_level: str) -> None:
        self.address = wanted(option)
        self.why_not = "" if self.address else f"--console {NO_CONSOLE}"
        self._secured = secured
        self._log_level = log_level
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"{'http' if self._secured is None else 'https'}://{self.address}"

    def start(self, bootstrap: str, registry: str, metrics: Sequence[str]) -> None:
        """Where the port is taken the broker runs without a console, and says so."""
        if self.address is None:
            return
        self.why_not = why_not(self.address)
        if self.why_not:
            return
        self._process = subprocess.Popen(
            command(bootstrap, self.address, registry, metrics, self._secured, self._log_level),
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


def console_lines(child: ConsoleChild) -> str:
    if not child.why_not:
        return f"\n  Console, in a browser: {child.url}"
    hint = "" if child.address is None else "; choose another port with --console HOST:PORT"
    return f"\n  No console: {child.why_not}{hint}"
