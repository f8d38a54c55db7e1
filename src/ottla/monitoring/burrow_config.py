"""Burrow's configuration file, so that who has one can keep it: TOML in, settings of the monitor out.

What means something here has its effect. What cannot is named with the reason (`without_effect`), and what is unknown
or would be dangerous to ignore is an error.
"""

import tomllib
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from ottla.client.errors import InvalidSetting
from ottla.config.guessing import nearest
from ottla.http.address import HttpAddress, parse_address
from ottla.model.errors import OttlaError
from ottla.monitoring.clients import monitor_client
from ottla.monitoring.lag.notices import NotifierRule
from ottla.monitoring.lag.notifiers import (
    TIMEOUT_SECONDS,
    Email,
    Mail,
    Notifier,
    Render,
    Trust,
    Webhook,
    WebhookTarget,
    as_json,
    as_mail,
)
from ottla.monitoring.lag.rules import Rules, Status
from ottla.monitoring.lag.templates import Template, data_of, sample
from ottla.monitoring.lag.watching import WatchSettings

Section = dict[str, Any]
ReadFile = Callable[[str], str]
"""The text of a file; raises an OttlaError that names it."""


class BadConfig(OttlaError):
    """A configuration that cannot be followed; the message names the setting and says what to do."""


class HttpListener(NamedTuple):
    address: HttpAddress
    certificate: str | None = None
    key: str | None = None


class BurrowConfig(NamedTuple):
    watches: tuple[WatchSettings, ...]
    notifiers: tuple[Notifier, ...]
    listeners: tuple[HttpListener, ...]
    without_effect: tuple[str, ...]
    """`logging.level: the command's own log ...`, for the user to read."""


_NO_EFFECT_SECTIONS = {
    "general": "this process is started and logged by whoever runs it",
    "logging": "log lines go to standard error",
    "zookeeper": "each monitor notifies by itself; run one",
}
_KNOWN: Mapping[str, frozenset[str]] = {
    "client-profile": frozenset({"client-id", "tls", "sasl"}),
    "tls": frozenset({"certfile", "keyfile", "cafile", "noverify"}),
    "sasl": frozenset({"username", "password", "mechanism"}),
    "cluster": frozenset({"class-name", "servers", "client-profile", "offset-refresh"}),
    "consumer": frozenset({"class-name", "cluster", "servers", "client-profile", "group-allowlist", "group-denylist"}),
    "httpserver": frozenset({"address", "tls"}),
    "storage": frozenset(
        {"class-name", "intervals", "min-distance", "expire-group", "group-allowlist", "group-denylist"}
    ),
    "evaluator": frozenset({"class-name", "minimum-complete", "allowed-lag"}),
    "notifier": frozenset(
        {
            "class-name", "interval", "send-interval", "threshold", "send-once", "send-close", "group-allowlist",
            "group-denylist", "template-open", "template-close", "extras", "timeout", "url-open", "url-close",
            "method-open", "method-close", "headers", "username", "password", "extra-ca", "noverify", "server",
            "port", "auth-type", "from", "to",
        }
    ),
}  # fmt: skip
_OTHER_NAMES = {"group-whitelist": "group-allowlist", "group-blacklist": "group-denylist"}
_WITHOUT_EFFECT: Mapping[str, str] = {
    "client-profile.kafka-version": "brokers are asked which versions they speak",
    "cluster.topic-refresh": "topics are read at every look",
    "cluster.groups-reaper-refresh": "groups that are gone are forgotten at every look",
    "consumer.offsets-topic": "commits are asked of the coordinators and not read from their topic",
    "consumer.start-latest": "commits are asked of the coordinators and not read from their topic",
    "consumer.backfill-earliest": "commits are asked of the coordinators and not read from their topic",
    "consumer.servers": "a cluster has one list of servers, in [cluster.*]",
    "consumer.client-profile": "a cluster has one client profile, in [cluster.*]",
    "httpserver.timeout": "the listener has limits of its own",
    "storage.workers": "there is one process with one loop",
    "storage.queue-depth": "there is one process with one loop",
    "evaluator.expire-cache": "a group is judged when somebody asks",
    "notifier.keepalive": "each notice is a connection of its own",
    "notifier.disable-http-keepalive": "each notice is a connection of its own",
    "sasl.handshake-first": "the handshake comes first always",
}


def read_burrow(text: str, where: str, read_file: ReadFile) -> BurrowConfig:
    """`where` is the file's name, for messages."""
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise BadConfig(f"{where}: {error}") from None
    return _Reader(document, where, read_file).read()


class _Reader:
    def __init__(self, document: Section, where: str, read_file: ReadFile) -> None:
        self._document = document
        self._where = where
        self._read_file = read_file
        self._unused: list[str] = []

    def read(self) -> BurrowConfig:
        for kind, content in self._document.items():
            if kind in _NO_EFFECT_SECTIONS:
                self._unused.append(f"[{kind}]: {_NO_EFFECT_SECTIONS[kind]}")
            elif kind not in _KNOWN:
                close = nearest(kind, _KNOWN)
                hint = f"; did you mean [{close}.*]?" if close else ""
                raise BadConfig(f"{self._where}: the section [{kind}] is not known{hint}")
            elif not isinstance(content, dict) or not all(isinstance(each, dict) for each in content.values()):
                raise BadConfig(f"{self._where}: sections are called [{kind}.NAME]")
            else:
                for name in [*content]:
                    self._check(kind, name, content)
        watches = tuple(self._watch(name, section) for name, section in self._sections("cluster").items())
        if not watches:
            raise BadConfig(f"{self._where}: no [cluster.NAME] says which cluster to watch")
        notifiers = tuple(
            found
            for name, section in self._sections("notifier").items()
            if (found := self._notifier(name, section)) is not None
        )
        listeners = tuple(self._listener(name, each) for name, each in self._sections("httpserver").items())
        return BurrowConfig(watches, notifiers, listeners, tuple(self._unused))

    def _sections(self, kind: str) -> dict[str, Section]:
        return dict(self._document.get(kind, {}))

    def _check(self, kind: str, name: str, sections: dict[str, Section]) -> None:
        section = sections[name]
        if kind == "consumer" and section.get("class-name") == "kafka_zk":
            self._unused.append(f"[consumer.{name}]: commits in ZooKeeper are of another age, and are not looked at")
            del sections[name]
            return
        for old, new in _OTHER_NAMES.items():
            if old in section:
                section[new] = section.pop(old)
        for key in [*section]:
            reason = _WITHOUT_EFFECT.get(f"{kind}.{key}")
            if reason is not None:
                self._unused.append(f"{kind}.{name}.{key}: {reason}")
            elif key not in _KNOWN[kind]:
                close = nearest(key, _KNOWN[kind])
                hint = f"; did you mean {close}?" if close else ""
                raise BadConfig(f"{self._where}: {kind}.{name}.{key} is not known{hint}")

    # Values

    def _get(self, path: str, section: Section, key: str, kind: type, default: Any) -> Any:
        value = section.get(key, default)
        if kind is float and isinstance(value, int):
            value = float(value)
        if value is not default and (not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool)):
            raise BadConfig(f"{self._where}: {path}.{key} is a {_WORDS[kind]}, not {value!r}")
        return value

    def _positive(self, path: str, section: Section, key: str, default: float) -> float:
        value = float(self._get(path, section, key, float, default))
        if value <= 0:
            raise BadConfig(f"{self._where}: {path}.{key} is more than 0, not {value:g}")
        return value

    # Clusters

    def _watch(self, name: str, section: Section) -> WatchSettings:
        path = f"cluster.{name}"
        self._class(path, section, {"kafka"})
        servers = section.get("servers")
        if not isinstance(servers, list) or not servers or not all(isinstance(each, str) for each in servers):
            raise BadConfig(f'{self._where}: {path}.servers is a list such as ["kafka-1:9092"]')
        try:
            client = monitor_client(",".join(servers), self._client(path, section.get("client-profile")))
        except InvalidSetting as error:
            raise BadConfig(f"{self._where}: {path}: {error}") from None
        consumers = [each for each in self._sections("consumer").values() if each.get("cluster", name) == name] + list(
            self._sections("storage").values()
        )
        for consumer_name, consumer in self._sections("consumer").items():
            self._class(f"consumer.{consumer_name}", consumer, {"kafka"})
        return WatchSettings(
            name,
            client,
            self._rules(),
            self._positive(path, section, "offset-refresh", 10),
            allow=_either(each.get("group-allowlist", "") for each in consumers),
            deny=_either(each.get("group-denylist", "") for each in consumers),
        )

    def _class(self, path: str, section: Section, known: set[str]) -> str:
        found = section.get("class-name")
        if found not in known:
            words = " or ".join(sorted(known))
            raise BadConfig(f"{self._where}: {path}.class-name is {words} here, not {found!r}")
        return str(found)

    def _rules(self) -> Rules:
        storage: Section = next(iter(self._sections("storage").values()), {"class-name": "inmemory"})
        evaluator: Section = next(iter(self._sections("evaluator").values()), {"class-name": "caching"})
        self._class("storage", storage, {"inmemory"})
        self._class("evaluator", evaluator, {"caching"})
        return Rules(
            intervals=int(self._positive("storage", storage, "intervals", 10)),
            min_distance_ms=int(1000 * self._get("storage", storage, "min-distance", float, 1.0)),
            minimum_complete=float(self._get("evaluator", evaluator, "minimum-complete", float, 0.0)),
            allowed_lag=int(self._get("evaluator", evaluator, "allowed-lag", int, 0)),
            expire_group_ms=int(1000 * self._positive("storage", storage, "expire-group", 604_800)),
        )

    def _client(self, path: str, profile: str | None) -> dict[str, str]:
        """TLS and SASL of a client profile, in the names of clients' settings."""
        if profile is None:
            return {}
        section = self._named("client-profile", profile, path)
        settings: dict[str, str] = {}
        if "client-id" in section:
            settings["client.id"] = str(section["client-id"])
        secure, login = section.get("tls"), section.get("sasl")
        if secure is not None:
            tls = self._named("tls", secure, path)
            settings |= {
                name: str(tls[key])
                for key, name in (
                    ("cafile", "ssl.ca.location"),
                    ("certfile", "ssl.certificate.location"),
                    ("keyfile", "ssl.key.location"),
                )
                if key in tls
            }
            if tls.get("noverify"):
                settings["enable.ssl.certificate.verification"] = "false"
        if login is not None:
            sasl = self._named("sasl", login, path)
            settings["sasl.mechanism"] = str(sasl.get("mechanism", "PLAIN"))
            settings["sasl.username"] = str(sasl.get("username", ""))
            settings["sasl.password"] = str(sasl.get("password", ""))
        if secure is not None or login is not None:
            settings["security.protocol"] = f"{'SASL_' if login else ''}{'SSL' if secure else 'PLAINTEXT'}"
        return settings

    def _named(self, kind: str, name: str, path: str) -> Section:
        found = self._sections(kind).get(name)
        if found is None:
            raise BadConfig(f"{self._where}: {path} names [{kind}.{name}], which is not there")
        return found

    def _listener(self, name: str, section: Section) -> HttpListener:
        path = f"httpserver.{name}"
        given = str(section.get("address", ""))
        # Burrow listens on all interfaces where no host is given; so does whoever moves here with their file.
        address = parse_address(f"0.0.0.0{given}" if given.startswith(":") else given, f"{path}.address")  # noqa: S104
        if "tls" not in section:
            return HttpListener(address)
        tls = self._named("tls", section["tls"], path)
        return HttpListener(address, tls.get("certfile"), tls.get("keyfile"))

    # Notifiers

    def _notifier(self, name: str, section: Section) -> Notifier | None:
        path = f"notifier.{name}"
        kind = self._class(path, section, {"http", "email", "null"})
        if kind == "null":
            return None
        again = section.get("send-interval", section.get("interval", 60))
        rule = NotifierRule(
            name,
            self._threshold(path, section),
            int(1000 * self._get(path, {"interval": again}, "interval", float, 60.0)),
            bool(self._get(path, section, "send-once", bool, False)),
            bool(self._get(path, section, "send-close", bool, False)),
            str(self._get(path, section, "group-allowlist", str, "")),
            str(self._get(path, section, "group-denylist", str, "")),
        )
        trust = Trust(section.get("extra-ca"), not self._get(path, section, "noverify", bool, False))
        login = (str(section["username"]), str(section.get("password", ""))) if section.get("username") else None
        if kind == "email":
            return self._email(path, section, rule, trust, login)
        opening, closing = self._templates(section, as_json)
        url = self._needed(path, section, "url-open")
        url_close = str(section.get("url-close", url if rule.send_close else ""))
        return Webhook(
            rule,
            WebhookTarget(
                self._template(url, f"{path}.url-open", section), str(section.get("method-open", "POST")), opening
            ),
            WebhookTarget(
                self._template(url_close, f"{path}.url-close", section),
                str(section.get("method-close", "POST")),
                closing,
            ),
            timeout_s=self._positive(path, section, "timeout", TIMEOUT_SECONDS),
            headers={key: str(value) for key, value in self._get(path, section, "headers", dict, {}).items()},
            login=login,
            trust=trust,
        )

    def _threshold(self, path: str, section: Section) -> Status:
        value = self._get(path, section, "threshold", int, int(Status.WARN))
        if not Status.OK <= value <= Status.ERR:
            raise BadConfig(f"{self._where}: {path}.threshold is 1 (OK), 2 (WARN) or 3 (ERR), not {value}")
        return Status(value)

    def _email(
        self, path: str, section: Section, rule: NotifierRule, trust: Trust, login: tuple[str, str] | None
    ) -> Email:
        if section.get("auth-type", "") not in ("", "plain", "login", "crammd5"):
            raise BadConfig(f"{self._where}: {path}.auth-type is plain, login or crammd5; the server offers which")
        to = tuple(address.strip() for address in self._needed(path, section, "to").split(","))
        port = int(self._get(path, section, "port", int, 25))
        mail = Mail(self._needed(path, section, "server"), port, self._needed(path, section, "from"), to, login, trust)
        return Email(rule, mail, *self._templates(section, as_mail))

    def _templates(self, section: Section, otherwise: Render) -> tuple[Render, Render]:
        found = [section.get(key) for key in ("template-open", "template-close")]
        read = [otherwise if path is None else self._template(self._read_file(path), path, section) for path in found]
        return read[0], read[1]

    def _template(self, text: str, where: str, section: Section) -> Render:
        template = Template(text, where)
        extras = {key: str(value) for key, value in section.get("extras", {}).items()}
        template.render(data_of(sample(), extras))
        return lambda notice: template.render(data_of(notice, extras))

    def _needed(self, path: str, section: Section, key: str) -> str:
        value = self._get(path, section, key, str, "")
        if not value:
            raise BadConfig(f"{self._where}: {path}.{key} is missing")
        return str(value)


_WORDS: Mapping[type, str] = {str: "text", int: "whole number", float: "number", bool: "true or false", dict: "table"}


def _either(patterns: Iterable[str]) -> str:
    """One pattern for several; an empty one says nothing."""
    return "|".join(f"(?:{pattern})" for pattern in dict.fromkeys(patterns) if pattern)
