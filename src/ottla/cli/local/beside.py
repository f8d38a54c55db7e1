"""A server in a process of its own beside the broker of `ottla up`, which ends with it."""

import subprocess
import sys
from collections.abc import Sequence

from ottla.cli.local import secure
from ottla.http.address import BadListener, HttpAddress
from ottla.http.listening import listen

STOP_SECONDS_MAX = 10.0
_PROGRAM = (
    "import sys; from ottla.testing.child import end_with_parent; end_with_parent(); "
    "from ottla.cli.main import main; sys.exit(main())"
)


def child_command(options: Sequence[str]) -> list[str]:
    """An `ottla` command that ends when its standard input does."""
    return [sys.executable, "-c", _PROGRAM, *options]


def why_not(address: HttpAddress) -> str:
    """Why the address cannot be listened on; empty if it can."""
    if not address.port:
        return ""
    try:
        listen(address, backlog=1).close()
    except BadListener as error:
        return str(error)
    return ""


class ChildBeside:
    """`why_not` says in words why there is none."""

    def __init__(
        self, address: HttpAddress | None, unwanted: str, secured: secure.Secured | None, log_level: str
    ) -> None:
        self.address = address
        self.why_not = "" if address else unwanted
        self._secured = secured
        self._log_level = log_level
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"{'http' if self._secured is None else 'https'}://{self.address}"

    def said(self, url_line: str, what: str, option: str) -> str:
        """For whoever started the broker; where the port is taken it runs without this, and says so."""
        if not self.why_not:
            return f"\n  {url_line}{self.url}"
        hint = "" if self.address is None else f"; choose another port with {option} HOST:PORT"
        return f"\n  No {what}: {self.why_not}{hint}"

    def run(self, command: Sequence[str]) -> None:
        assert self.address is not None
        self.why_not = why_not(self.address)
        if not self.why_not:
            self._process = subprocess.Popen(
                command,
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
