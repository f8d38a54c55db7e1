"""`ottla registry`, also `schema-registry-start`: a schema registry for a cluster, Ottla's or Apache Kafka's."""

import asyncio
import logging
import sys
from collections.abc import Sequence

from ottla.cli.common.listening import add_allow_unauthenticated, add_listen, check_exposure
from ottla.cli.common.options import ToolParser, add_connection_options, bootstrap_of, client_settings, read_text
from ottla.cli.common.output import CommandError
from ottla.cli.local.log_format import add_log_level
from ottla.model.defaults import REGISTRY_PORT
from ottla.model.errors import OttlaError

EXAMPLES = """
  %(prog)s                                            for the broker on this machine, on port 8081
  %(prog)s --bootstrap-server kafka1:9092 --listen 0.0.0.0:8081 --keystore registry.pem --users users.txt
  %(prog)s --bootstrap-server kafka1:9093 --command-config client.properties
  %(prog)s --keystore registry.pem --users users.txt  HTTPS, and only for those in the file
  %(prog)s --login SCRAM-SHA-512 --authorize          users and ACLs of the brokers count here too

Schemas are kept in the topic _schemas of the cluster, in Confluent's format. Start as many as you like: one of them
writes, the others pass writes on to it. One line on stdout says when requests are answered; SIGTERM and Ctrl-C stop it.
"""


def main(argv: Sequence[str] | None = None, prog: str = "ottla registry") -> int:
    parser = ToolParser(prog, "Run a schema registry.", EXAMPLES, help_without_arguments=False)
    add_connection_options(parser, json=False)
    add_listen(parser, "the registry", default=f"127.0.0.1:{REGISTRY_PORT}")
    parser.add_argument("--advertised-url", metavar="URL", help="how other instances reach this one")
    parser.add_argument("--keystore", metavar="FILE", help="PEM or PKCS12 with key and certificate: HTTPS")
    parser.add_argument("--keystore-password-file", metavar="FILE", help="its password, if it has one")
    parser.add_argument("--truststore", metavar="FILE", help="authorities that other instances' certificates come from")
    parser.add_argument("--users", metavar="FILE", help="lines of `name: password`: basic login")
    parser.add_argument(
        "--login",
        choices=("SCRAM-SHA-256", "SCRAM-SHA-512"),
        help="basic login with the names and passwords of the brokers' SCRAM users",
    )
    parser.add_argument(
        "--authorize", action="store_true", help="a user needs the ACLs on a topic for its subjects (docs/schemas.md)"
    )
    add_allow_unauthenticated(parser)
    parser.add_argument("--super-users", default="", metavar="User:NAME;...", help="who may do everything")
    parser.add_argument("--group", default="schema-registry", help="the group of instances (default: schema-registry)")
    parser.add_argument("--topic", default="_schemas", help="where schemas are kept (default: _schemas)")
    parser.add_argument(
        "--session-timeout-ms",
        type=int,
        default=10_000,
        metavar="MS",
        help="after so long without a word of it another instance writes (default: 10000)",
    )
    add_log_level(parser, "info")
    args = parser.parse(argv)
    if args.users and args.login:
        parser.error("--users and --login both say who may come in: leave one of them out")
    if args.authorize and not (args.users or args.login):
        parser.error("--authorize needs to know who asks: add --users FILE or --login SCRAM-SHA-512")
    check_exposure(
        args.listen,
        login=bool(args.users or args.login),
        tls=bool(args.keystore),
        meant=args.allow_unauthenticated,
        how="--users FILE or --login SCRAM-SHA-512, with --keystore FILE",
    )
    logging.basicConfig(
        stream=sys.stderr, level=args.log_level.upper(), format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
    import uvloop

    from ottla.registry.process import RegistryOptions, serve

    password_file = args.keystore_password_file
    options = RegistryOptions(
        settings={**client_settings(args), "bootstrap.servers": bootstrap_of(args)},
        listen=args.listen,
        advertised_url=args.advertised_url,
        keystore=args.keystore,
        keystore_password=read_text(password_file).strip() if password_file else None,
        truststore=args.truststore,
        users_file=args.users,
        scram=args.login,
        authorize=args.authorize,
        super_users=tuple(name.strip() for name in args.super_users.split(";") if name.strip()),
        group=args.group,
        topic=args.topic,
        session_timeout_ms=args.session_timeout_ms,
    )
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return runner.run(serve(options, lambda url: print(f"The schema registry answers on {url}", flush=True)))
    except OttlaError as error:
        raise CommandError(f"the registry cannot go on: {error}") from error
