"""The network between the brokers of a cluster, which can be cut.

Each broker has a second listener for the others, and tells them the address of a relay in front of it. All relays run
in one process of their own (`links_process.py`), which can say which broker a connection comes from: it looks up whose
socket it is. A link that is cut carries nothing and closes nothing, as a network would: whoever waits at its end waits.
Clients use the first listener and do not notice. With `for_clients` the relays are for clients instead: those that are
given `address` go through them, and the brokers among themselves do not.
"""

import json
import subprocess
import sys
from collections.abc import Iterable
from typing import NamedTuple

from ottla.testing.links_process import CLIENTS
from ottla.testing.ports import free_ports
from ottla.testing.running import SettingValue

LISTENER = "BETWEEN"
_PROGRAM = "from ottla.testing.links_process import main; main()"


class _Ports(NamedTuple):
    client: int
    own: int
    relay: int


class Links:
    """Relays for the brokers with these ids."""

    def __init__(self, ids: Iterable[int], *, for_clients: bool = False) -> None:
        self._ids = sorted(ids)
        self._for_clients = for_clients
        ports = iter(free_ports(3 * len(self._ids)))
        self._ports = {number: _Ports(next(ports), next(ports), next(ports)) for number in self._ids}
        self._process = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        relays = [[each.relay, each.own] for each in self._ports.values()]
        self._tell({"relays": relays, "ids": self._ids, "for_clients": for_clients})

    def settings(self, number: int) -> dict[str, SettingValue]:
        """What a broker must be given to be reached by the others through its relay."""
        client, own, relay = self._ports[number]
        return {
            "listeners": f"PLAINTEXT://127.0.0.1:{client},{LISTENER}://127.0.0.1:{own}",
            "advertised.listeners": f"PLAINTEXT://127.0.0.1:{client},{LISTENER}://127.0.0.1:{relay}",
            "listener.security.protocol.map": f"PLAINTEXT:PLAINTEXT,{LISTENER}:PLAINTEXT",
            "inter.broker.listener.name": "PLAINTEXT" if self._for_clients else LISTENER,
        }

    def address(self, number: int) -> str:
        """Where clients reach a broker through its relay."""
        return f"127.0.0.1:{self._ports[number].relay}"

    def cut(self, *pairs: tuple[int, int]) -> None:
        """From now on exactly these pairs of brokers do not hear each other."""
        self._tell({"cut": pairs})

    def cut_off(self, number: int) -> None:
        """From now on this broker hears no other (or no client), and only this one."""
        if self._for_clients:
            self.cut((number, CLIENTS))
            return
        self.cut(*((number, other) for other in self._ids if other != number))

    def heal(self) -> None:
        """Every link carries again, what was held back first."""
        self.cut()

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()

    def _tell(self, message: object) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps(message), file=self._process.stdin, flush=True)
        answer = self._process.stdout.readline()
        assert answer == "done\n", f"the process of the relays said {answer!r}"
