"""What the tools do until a broker answers: say so within seconds, in the words that Kafka's clients log, and wait.

Who has a limit (a producer's max.block.ms, a consumer's --timeout-ms) ends with an error when it is over; others wait
until they are stopped, as Kafka's tools do.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from ottla.cli.common.output import CommandError, note, warn
from ottla.client.errors import ClientError, InvalidSetting
from ottla.client.presence import ANSWER_TIMEOUT_S, Absent, absent_brokers
from ottla.client.security import PLAINTEXT, Security, parse_security

ASK_AGAIN_S = 0.5
SAY_AGAIN_S = 10.0
WHAT_TO_DO = "start one with `ottla up`, or name another with --bootstrap-server"

Ask = Callable[[], Sequence[Absent]]


class Patience(NamedTuple):
    """How long to wait, and which option or setting says so."""

    seconds: float
    limit: str


ENDLESS = Patience(float("inf"), "")


def await_broker(
    properties: Mapping[str, str], patience: Patience, is_stopped: Callable[[], object], *, lost: str = ""
) -> bool:
    """Return when a broker of `bootstrap.servers` answers: True; False if the tool was asked to stop meanwhile.

    `lost` says in the error what has not been done.
    """
    ask = _asking(properties)
    bootstrap = properties["bootstrap.servers"]
    waiting = Waiting(bootstrap, patience, time.monotonic(), lost)
    while absent := ask():
        waiting.heard_nothing(absent, time.monotonic())
        ask_at = time.monotonic() + ASK_AGAIN_S
        while time.monotonic() < ask_at:
            if is_stopped():
                return False
            time.sleep(0.05)
    waiting.heard()
    return True


def look_for_broker(properties: Mapping[str, str]) -> None:
    """Say so if none answers, and go on: for a tool that can tell itself what it did not get done."""
    if absent := _asking(properties)():
        Waiting(properties["bootstrap.servers"], ENDLESS, 0.0).heard_nothing(absent, 0.0)


def _asking(properties: Mapping[str, str]) -> Ask:
    bootstrap, security = properties["bootstrap.servers"], _security(properties)

    def ask() -> Sequence[Absent]:
        try:
            return absent_brokers(bootstrap, security, ANSWER_TIMEOUT_S)
        except ClientError as error:
            raise CommandError(str(error)) from None

    return ask


class Waiting:
    """What is said while nobody answers, and when it is enough."""

    def __init__(self, bootstrap: str, patience: Patience, now: float, lost: str = "") -> None:
        self._bootstrap = bootstrap
        self._patience = patience
        self._lost = lost
        self._since = now
        self._say_at = now

    def heard_nothing(self, absent: Sequence[Absent], now: float) -> None:
        if all(each.ip is None for each in absent):
            # A name that nobody knows will not be known in a minute either; Kafka's clients end here, too.
            _say(absent)
            raise CommandError(
                f"No resolvable bootstrap urls given in bootstrap.servers: {self._bootstrap}; "
                "check the name, or name another broker with --bootstrap-server"
            )
        if now >= self._say_at:
            first = self._say_at == self._since
            self._say_at = now + SAY_AGAIN_S
            _say(absent)
            if first:
                note(f"waiting for a broker at {self._bootstrap}{self._limit()}; {WHAT_TO_DO}")
        if now - self._since >= self._patience.seconds:
            raise CommandError(
                f"no broker answers at {self._bootstrap}, for {self._patience.seconds:g} s ({self._patience.limit})"
                f"{self._lost and f'; {self._lost}'}; {WHAT_TO_DO}"
            )

    def heard(self) -> None:
        if self._say_at != self._since:
            note(f"a broker answers at {self._bootstrap}")

    def _limit(self) -> str:
        return f", for at most {self._patience.seconds:g} s ({self._patience.limit})" if self._patience.limit else ""


def _say(absent: Sequence[Absent]) -> None:
    for each in absent:
        warn(str(each))


def _security(properties: Mapping[str, str]) -> Security:
    try:
        return parse_security(dict(properties))
    except InvalidSetting:
        return PLAINTEXT  # librdkafka knows more settings; even a broker that wants TLS hangs up, which is an answer
