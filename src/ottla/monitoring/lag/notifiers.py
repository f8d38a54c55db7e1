"""How notices leave: to a URL, or by e-mail. Sending waits for others, so it runs in a thread."""

import base64
import json
import smtplib
import ssl
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from email import message_from_string
from email.message import EmailMessage
from email.policy import SMTP
from typing import Any, NamedTuple, Protocol

from ottla.model.errors import OttlaError
from ottla.monitoring.lag.documents import group_status
from ottla.monitoring.lag.notices import Notice, NotifierRule
from ottla.tls.trusting import trusting

Render = Callable[[Notice], str]
"""A notice as the text that is sent."""

TIMEOUT_SECONDS = 5.0


class NotSent(OttlaError):
    """A notice did not reach whom it was for; the message says why."""


class Notifier(Protocol):
    @property
    def rule(self) -> NotifierRule: ...

    def send(self, notice: Notice) -> None:
        """Raises NotSent."""


class Trust(NamedTuple):
    """Whom a notifier believes to be who it says."""

    extra_ca: str | None = None
    verify: bool = True

    def context(self) -> ssl.SSLContext:
        context = trusting()
        if self.extra_ca:
            context.load_verify_locations(cafile=self.extra_ca)
        if not self.verify:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        return context


class WebhookTarget(NamedTuple):
    url: Render
    method: str
    body: Render


class Webhook:
    """A request for each notice; any answer but 2xx is a failure."""

    def __init__(
        self,
        rule: NotifierRule,
        opening: WebhookTarget,
        closing: WebhookTarget,
        *,
        timeout_s: float = TIMEOUT_SECONDS,
        headers: Mapping[str, str] | None = None,
        login: tuple[str, str] | None = None,
        trust: Trust = Trust(),  # noqa: B008 - it cannot change
    ) -> None:
        self.rule = rule
        self._opening = opening
        self._closing = closing
        self._timeout_s = timeout_s
        self._headers = {"Content-Type": "application/json", **(headers or {})}
        if login is not None:
            self._headers["Authorization"] = "Basic " + base64.b64encode(":".join(login).encode()).decode()
        self._trust = trust

    def send(self, notice: Notice) -> None:
        target = self._closing if notice.is_close else self._opening
        url = target.url(notice)
        if urllib.parse.urlsplit(url).scheme not in ("http", "https"):
            raise NotSent(f"{url} is neither http:// nor https://")
        request = urllib.request.Request(url, target.body(notice).encode(), self._headers, method=target.method)  # noqa: S310
        try:
            with urllib.request.urlopen(request, timeout=self._timeout_s, context=self._trust.context()):  # noqa: S310
                pass
        except urllib.error.HTTPError as error:
            raise NotSent(f"{url} answered {error.code}") from None
        except OSError as error:
            raise NotSent(f"{url}: {error}") from None


class Mail(NamedTuple):
    server: str
    port: int
    sender: str
    to: tuple[str, ...]
    login: tuple[str, str] | None = None
    trust: Trust = Trust()


class Email:
    """A mail for each notice, over TLS where the server offers it."""

    def __init__(self, rule: NotifierRule, mail: Mail, opening: Render, closing: Render) -> None:
        self.rule = rule
        self._mail = mail
        self._opening = opening
        self._closing = closing

    def send(self, notice: Notice) -> None:
        text = (self._closing if notice.is_close else self._opening)(notice)
        try:
            with smtplib.SMTP(self._mail.server, self._mail.port, timeout=TIMEOUT_SECONDS) as session:
                session.ehlo()
                if session.has_extn("starttls"):
                    session.starttls(context=self._mail.trust.context())
                if self._mail.login is not None:
                    session.login(*self._mail.login)
                session.send_message(self._message(text))
        except (OSError, smtplib.SMTPException) as error:
            raise NotSent(f"{self._mail.server}:{self._mail.port}: {error}") from None

    def _message(self, text: str) -> EmailMessage:
        """Headers, such as Subject, stand before the first empty line, as in Burrow's templates."""
        given = message_from_string(text)
        message = EmailMessage(policy=SMTP)
        for name, value in given.items():
            message[name] = value
        message["From"] = self._mail.sender
        message["To"] = ", ".join(self._mail.to)
        message.set_content(str(given.get_payload()))
        return message


# What is said where no template is given.


def as_json(notice: Notice) -> str:
    return json.dumps(_document(notice), separators=(",", ":"))


def _document(notice: Notice) -> dict[str, Any]:
    return {
        "id": notice.incident,
        "event": notice.kind,
        "start": _moment(notice.start_ms),
        "result": group_status(notice.cluster, notice.group, notice.group.group, everything=False),
    }


def as_mail(notice: Notice) -> str:
    group = notice.group
    state = "is well again" if notice.is_close else f"is in trouble: {group.status.name}"
    lines = [
        f"Subject: [ottla] consumer group {group.group} of {notice.cluster} {state}",
        "",
        f"Consumer group {group.group} of the cluster {notice.cluster} {state}.",
        "",
        f"Incident: {notice.incident}, since {_moment(notice.start_ms)}",
        f"Unread:   {group.total_lag} records in {len(group.partitions)} partitions",
    ]
    lines += [
        f"          {each.status.name} {each.topic}:{each.partition} "
        f"(offset {each.end.offset if each.end else '-'}, {each.current_lag} unread)"
        for each in group.bad
    ]
    return "\n".join(lines) + "\n"


def _moment(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="seconds")
