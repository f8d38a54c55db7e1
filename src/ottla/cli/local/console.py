"""`ottla console`: everything at a glance in a browser, for Ottla's clusters and Apache Kafka's."""

import argparse
import asyncio
import getpass
import ipaddress
import logging
import re
import ssl
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from ottla.cli.common.listening import add_listen
from ottla.cli.common.options import (
    ToolParser,
    add_connection_options,
    bootstrap_of,
    client_settings,
    read_properties,
    read_text,
)
from ottla.cli.common.output import CommandError
from ottla.cli.local.log_format import add_log_level
from ottla.model.defaults import CONSOLE_PORT
from ottla.model.errors import OttlaError

if TYPE_CHECKING:
    from ottla.console.access.gate import AccessSettings
    from ottla.console.listeners import MetricsListener

EXAMPLES = """
  %(prog)s                                            of the broker on this machine, on port 8090
  %(prog)s --bootstrap-server kafka1:9092 --registry http://kafka1:8081 --pipelines http://spark1:4050
  %(prog)s --cluster live=kafka1:9092 --cluster test=127.0.0.1:9092
  %(prog)s --config clusters.properties               several clusters, each with settings of its own
  %(prog)s --metrics 1=http://127.0.0.1:7071 --backups ./backups --mirror mirror.yaml --pipeline-files ./pipelines
  %(prog)s --listen 0.0.0.0:8090 --keystore console.pem --broker-login
  %(prog)s --users access.yaml --audit-log console-audit.log
  %(prog)s --hash-password                            a line for a file of users

clusters.properties:  clusters=live,test
                      live.bootstrap.servers=kafka1:9093
                      live.security.protocol=SASL_SSL          ... any setting of a client
                      live.registry=http://kafka1:8081
                      live.pipelines=http://spark1:4050
                      test.bootstrap.servers=127.0.0.1:9092

On this machine alone nobody has to sign in. On other addresses somebody has to, with the brokers' own users
(--broker-login), a file of users (--users) or an identity provider (--oidc-issuer), unless --open says otherwise.
One line on stdout says where it answers; SIGTERM and Ctrl-C stop it.
"""
STATE_DIR = ".ottla/pipelines"
CLUSTER_KEYS = (
    "registry", "registry.user", "registry.password", "registry.ca", "pipelines", "mirrors", "state.dir",
    "pipeline.files", "backups", "metrics", "monitors",
)  # fmt: skip


def main(argv: Sequence[str] | None = None, prog: str = "ottla console") -> int:
    args = _parse(argv, prog)
    if args.hash_password:
        return _hash_password()
    logging.basicConfig(
        stream=sys.stderr, level=args.log_level.upper(), format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
    import uvloop

    from ottla.console.access.audit import ConsoleAudit
    from ottla.console.access.gate import Gate
    from ottla.console.clusters import ClusterSettings
    from ottla.console.process import ConsoleOptions, serve

    clusters = [ClusterSettings(**each) for each in _clusters(args)]  # type: ignore[arg-type]
    tls = _tls(args)
    settings = _access(args, {each.name: each.client for each in clusters}, secure=tls is not None)
    if settings.is_open and not args.open and not _is_loopback(args.listen.host):
        raise CommandError(
            f"everybody who reaches {args.listen} could change everything: let people sign in with --broker-login, "
            "--users FILE or --oidc-issuer URL, or say --open if that is meant"
        )
    gate = Gate(settings, ConsoleAudit(args.audit_log) if args.audit_log else None)
    options = ConsoleOptions(clusters, args.listen, gate, tls, looks_at_once=not settings.broker_login)
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return runner.run(serve(options, lambda url: print(f"The console is at {url}", flush=True)))
    except OttlaError as error:
        raise CommandError(f"the console cannot go on: {error}") from error
    finally:
        gate.close()  # what waits for the audit log is written


def _parse(argv: Sequence[str] | None, prog: str) -> argparse.Namespace:
    parser = ToolParser(prog, "Serve a console for browsers.", EXAMPLES, help_without_arguments=False)
    add_connection_options(parser, json=False)
    add_listen(parser, "the console", default=f"127.0.0.1:{CONSOLE_PORT}")
    several = parser.add_argument_group("clusters")
    several.add_argument(
        "--cluster", action="append", default=[], metavar="NAME=HOST:PORT,...", help="a cluster by name; repeatable"
    )
    several.add_argument("--config", metavar="FILE", help="properties: clusters=a,b and a.bootstrap.servers=...")
    several.add_argument("--registry", metavar="URL", help="the schema registry of the cluster")
    several.add_argument("--registry-user", metavar="NAME", help="who to log in as there")
    several.add_argument("--registry-password-file", metavar="FILE", help="with this password")
    several.add_argument("--registry-ca", metavar="FILE", help="authorities that its certificate may come from (PEM)")
    several.add_argument(
        "--pipelines", action="append", default=[], metavar="URL", help="a driver of pipelines, or a mirror; repeatable"
    )
    several.add_argument(
        "--mirror", action="append", default=[], metavar="FILE", help="a mirror whose flows may be switched; repeatable"
    )
    several.add_argument(
        "--backups", action="append", default=[], metavar="PLACE",
        help="a folder, s3://bucket/prefix or a file of `ottla backup run`, whose backups are shown; repeatable",
    )  # fmt: skip
    several.add_argument(
        "--metrics", action="append", default=[], metavar="[ID=]URL",
        help="where a broker tells its metrics, for the times of requests; repeatable",
    )  # fmt: skip
    several.add_argument(
        "--monitor", action="append", default=[], metavar="URL",
        help="an `ottla monitor`, whose service levels are part of the overview's health; repeatable",
    )  # fmt: skip
    several.add_argument("--pipeline-files", metavar="DIR", help="a folder whose pipelines an admin may start")
    several.add_argument(
        "--state-dir", metavar="DIR", default=STATE_DIR,
        help=f"where mirrors and pipelines keep their state (default: {STATE_DIR})",
    )  # fmt: skip
    _add_access(parser)
    add_log_level(parser, "warning")
    return parser.parse(argv)


def _add_access(parser: ToolParser) -> None:
    group = parser.add_argument_group("who may come in")
    group.add_argument("--broker-login", action="store_true", help="the brokers' own users; their ACLs decide")
    group.add_argument("--users", metavar="FILE", help="users with password hashes and roles, in YAML or JSON")
    group.add_argument("--oidc-issuer", metavar="URL", help="an identity provider (OpenID Connect)")
    group.add_argument("--oidc-client-id", metavar="ID", help="what the console is called there")
    group.add_argument("--oidc-client-secret-file", metavar="FILE", help="with this secret")
    group.add_argument(
        "--oidc-role", choices=("viewer", "operator", "admin"), help="of those whose groups have no role in --users"
    )
    group.add_argument("--public-url", metavar="URL", help="how browsers reach it, if not by the address it listens on")
    group.add_argument("--open", action="store_true", help="everybody may come in, from other machines too")
    group.add_argument(
        "--role", choices=("viewer", "operator", "admin"), default="admin",
        help="of everybody, where nobody signs in (default: admin)",
    )  # fmt: skip
    group.add_argument("--read-only", action="store_true", help="nothing is changed, whoever asks")
    group.add_argument("--audit-log", metavar="FILE", help="a line of JSON for each change and each sign-in")
    group.add_argument("--hash-password", action="store_true", help="asks for a password and prints its hash")
    group.add_argument("--keystore", metavar="FILE", help="PEM or PKCS12 with key and certificate: HTTPS")
    group.add_argument("--keystore-password-file", metavar="FILE", help="its password, if it has one")


def _hash_password() -> int:
    from ottla.console.access.passwords import hash_password

    password = getpass.getpass("Password: ") if sys.stdin.isatty() else sys.stdin.readline().rstrip("\r\n")
    print(hash_password(password))
    return 0


def _clusters(args: argparse.Namespace) -> list[dict[str, object]]:
    """What each of them is made from."""
    if args.config:
        if args.cluster:
            raise CommandError("--config and --cluster both name clusters: leave one of them out")
        return read_clusters(read_properties(args.config), args.config)
    shared = {
        "registry": args.registry,
        "registry_login": (args.registry_user, _secret(args.registry_password_file)) if args.registry_user else None,
        "registry_ca": args.registry_ca,
        "pipelines": tuple(_url(url, "--pipelines") for url in args.pipelines),
        "mirrors": tuple(_file(path, "--mirror") for path in args.mirror),
        "state_dir": str(Path(args.state_dir).absolute()),
        "pipeline_files": _folder(args.pipeline_files, "--pipeline-files"),
        "backups": tuple(args.backups),
        "metrics": _listeners(args.metrics, "--metrics"),
        "monitors": tuple(_metrics_url(url, "--monitor") for url in args.monitor),
    }
    if args.registry:
        _url(args.registry.partition(",")[0], "--registry")
    own = client_settings(args)
    if not args.cluster:
        return [{"name": "local", "client": {**own, "bootstrap.servers": bootstrap_of(args)}, **shared}]
    found: list[dict[str, object]] = []
    for text in args.cluster:
        name, equals, bootstrap = text.partition("=")
        if not equals or not bootstrap:
            raise CommandError(f"--cluster wants NAME=HOST:PORT, not `{text}`")
        _check_name(name, [str(each["name"]) for each in found])
        found.append({"name": name, "client": {**own, "bootstrap.servers": bootstrap}, **(shared if not found else {})})
    return found


def read_clusters(properties: Mapping[str, str], path: str) -> list[dict[str, object]]:
    """`clusters=a,b`, and below each name its settings."""
    names = [name.strip() for name in properties.get("clusters", "").split(",") if name.strip()]
    if not names:
        raise CommandError(f"{path}: say which clusters there are: clusters=live,test")
    unknown = [key for key in properties if key != "clusters" and key.partition(".")[0] not in names]
    if unknown:
        raise CommandError(f"{path}: `{unknown[0]}` belongs to no cluster of {', '.join(names)}")
    found: list[dict[str, object]] = []
    for name in names:
        _check_name(name, [str(each["name"]) for each in found])
        own = {key.removeprefix(f"{name}."): value for key, value in properties.items() if key.startswith(f"{name}.")}
        if "bootstrap.servers" not in own:
            raise CommandError(f"{path}: {name}.bootstrap.servers is missing")
        user = own.get("registry.user")
        found.append(
            {
                "name": name,
                "client": {key: value for key, value in own.items() if key not in CLUSTER_KEYS},
                "registry": own.get("registry"),
                "registry_login": (user, own.get("registry.password", "")) if user else None,
                "registry_ca": own.get("registry.ca"),
                "pipelines": tuple(_url(url, f"{name}.pipelines") for url in _several(own, "pipelines")),
                "mirrors": tuple(_file(path, f"{name}.mirrors") for path in _several(own, "mirrors")),
                "state_dir": str(Path(own.get("state.dir", STATE_DIR)).absolute()),
                "pipeline_files": _folder(own.get("pipeline.files"), f"{name}.pipeline.files"),
                "backups": tuple(_several(own, "backups")),
                "metrics": _listeners(_several(own, "metrics"), f"{name}.metrics"),
                "monitors": tuple(_metrics_url(url, f"{name}.monitors") for url in _several(own, "monitors")),
            }
        )
    return found


def _several(properties: Mapping[str, str], key: str) -> list[str]:
    return [each.strip() for each in properties.get(key, "").split(",") if each.strip()]


def _file(path: str, option: str) -> str:
    if not Path(path).is_file():
        raise CommandError(f"{option}: there is no file {path}")
    return str(Path(path).absolute())


def _folder(path: str | None, option: str) -> str:
    if not path:
        return ""
    if not Path(path).is_dir():
        raise CommandError(f"{option}: there is no folder {path}")
    return str(Path(path).absolute())


def _check_name(name: str, known: Sequence[str]) -> None:
    if not name or not all(each.isalnum() or each in "._-" for each in name) or not name.isascii():
        raise CommandError(f"a cluster's name is of letters, digits, dots and dashes, not `{name}`")
    if name in known:
        raise CommandError(f"two clusters are called {name}")


def _url(text: str, option: str) -> str:
    url = text if "://" in text else f"http://{text}"
    where = urlsplit(url)
    if where.scheme not in ("http", "https") or not where.hostname:
        raise CommandError(f"{option}: `{text}` is not an address: write http://HOST:PORT")
    return url


def _metrics_url(text: str, option: str) -> str:
    url = _url(text, option)
    return url if urlsplit(url).path.strip("/") else f"{url.rstrip('/')}/metrics"


def _listeners(texts: Sequence[str], option: str) -> "tuple[MetricsListener, ...]":
    """`http://HOST:PORT`, or `ID=http://HOST:PORT` where the console is to know whose it is."""
    from ottla.console.listeners import MetricsListener

    found = []
    for text in texts:
        broker, _, url = text.partition("=") if re.match(r"\d+=", text) else ("", "", text)
        found.append(MetricsListener(_metrics_url(url, option), broker))
    return tuple(found)


def _secret(path: str | None) -> str:
    return read_text(path).strip() if path else ""


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _access(args: argparse.Namespace, clients: Mapping[str, Mapping[str, str]], *, secure: bool) -> "AccessSettings":
    from ottla.console.access.gate import AccessSettings
    from ottla.console.access.oidc import OidcSettings
    from ottla.console.access.roles import BUILT_IN
    from ottla.console.access.users import AccessFile, read_access_file

    public = urlsplit(_url(args.public_url, "--public-url")) if args.public_url else None
    oidc = None
    if args.oidc_issuer:
        if not args.oidc_client_id or public is None:
            raise CommandError("--oidc-issuer needs --oidc-client-id, and --public-url that browsers come back to")
        secret = _secret(args.oidc_client_secret_file) or None
        redirect = f"{args.public_url.rstrip('/')}/oidc/callback"
        oidc = OidcSettings(args.oidc_issuer, args.oidc_client_id, secret, redirect)
    return AccessSettings(
        file=read_access_file(args.users) if args.users else AccessFile(),
        broker_login=clients if args.broker_login else {},
        oidc=oidc,
        oidc_role=BUILT_IN[args.oidc_role] if args.oidc_role else None,
        open_role=BUILT_IN[args.role],
        hosts=frozenset({public.hostname} if public is not None and public.hostname else ()),
        secure=secure or (public is not None and public.scheme == "https"),
        read_only=args.read_only,
    )


def _tls(args: argparse.Namespace) -> ssl.SSLContext | None:
    if args.keystore is None:
        return None
    from ottla.tls.contexts import Agreement, server_context
    from ottla.tls.stores import StoreSettings, load_key_store

    keys = load_key_store(StoreSettings(args.keystore, _secret(args.keystore_password_file) or None))
    return server_context(keys, None, ssl.CERT_NONE, Agreement())
