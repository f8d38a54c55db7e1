"""`ottla sql`: a quick look at topics with SQL, at what is there now or at what comes."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime

from ottla.cli.common.admin_session import no_broker
from ottla.cli.common.options import ToolParser, add_connection_options, bootstrap_of, client_settings, parse_pairs
from ottla.cli.common.output import CommandError
from ottla.cli.pipeline import sql_text
from ottla.cli.pipeline.options import DEFAULT_MASTER
from ottla.client.errors import Unreachable

FORMATS = ("avro", "csv", "json", "protobuf", "raw", "text")

EXAMPLES = """
  %(prog)s "SELECT key, value FROM orders LIMIT 10"
  %(prog)s "SELECT item, sum(amount) FROM orders GROUP BY item" --format orders=json
  %(prog)s "SELECT * FROM orders.enriched WHERE amount > 100" --schema orders.enriched="id STRING, amount DOUBLE"
  %(prog)s "SELECT count(*) FROM orders" --from 2026-01-31T12:00:00Z --json
  %(prog)s "SELECT * FROM orders" --follow

tables: every topic is one, by its name. As text and raw it has the columns key, value, partition, offset, timestamp and
headers; in other formats its fields, and then _key, _partition, _offset, _timestamp and, for records that cannot be
read, _error.
"""


def main(argv: Sequence[str] | None = None, prog: str = "ottla sql") -> int:
    args = _parser(prog).parse(argv)
    if args.limit is not None and args.limit < 1:
        raise CommandError("--limit wants at least 1")
    sql = args.sql.strip().rstrip(";")
    if not sql_text.only_reads(sql):
        raise CommandError("`ottla sql` looks and changes nothing: write SELECT, WITH, VALUES, DESCRIBE or EXPLAIN")
    start = _start(args.start, follow=args.follow)
    client = {"client.id": "ottla-sql", **client_settings(args), "bootstrap.servers": bootstrap_of(args)}
    topics = _topics(client)
    formats = _choices(args.formats, "--format", topics)
    schemas = _choices(args.schemas, "--schema", topics)
    for topic, name in formats.items():
        if name not in FORMATS:
            raise CommandError(f"--format {topic}={name}: choose one of {', '.join(FORMATS)}")
    unknown = sql_text.unknown_table(sql, topics)
    if unknown is not None:
        raise CommandError(sql_text.no_such_topic(unknown, topics))

    from ottla.cli.pipeline.sql_output import output_for
    from ottla.cli.pipeline.sql_running import look
    from ottla.cli.pipeline.sql_tables import TopicAccess

    look(
        sql_text.quote_topics(sql, topics),
        topics,
        TopicAccess(
            client=client,
            start=start,
            follow=args.follow,
            formats=formats,
            schemas=schemas,
            explained=sql_text.may_show(sql, "_error"),
        ),
        output=output_for("json" if args.json else "csv" if args.csv else "table"),
        limit=args.limit,
        master=args.master,
        conf=parse_pairs(args.conf, "--conf"),
    )
    return 0


def _parser(prog: str) -> ToolParser:
    parser = ToolParser(prog, "A quick look at topics with SQL.", EXAMPLES)
    parser.usage = '%(prog)s "SELECT ..." [options]'
    parser.add_argument("sql", metavar="SQL", help="a query; topics are its tables")
    parser.add_argument(
        "--from", dest="start", metavar="WHERE",
        help="earliest, latest or a time such as 2026-01-31T12:00:00Z (default: earliest; latest with --follow)",
    )  # fmt: skip
    parser.add_argument("--follow", action="store_true", help="go on with what comes, until Ctrl-C")
    parser.add_argument("--limit", type=int, metavar="ROWS", help="stop after so many rows")
    parser.add_argument(
        "--format", action="append", default=[], dest="formats", metavar="TOPIC=FORMAT",
        help=f"how values are read: {', '.join(FORMATS)} (default: text; fields of JSON are guessed)",
    )  # fmt: skip
    parser.add_argument(
        "--schema", action="append", default=[], dest="schemas", metavar="TOPIC=SCHEMA",
        help="the fields of a topic, 'id STRING, amount DOUBLE', or an Avro schema",
    )  # fmt: skip
    add_connection_options(parser, json=False)
    output = parser.add_mutually_exclusive_group()
    output.add_argument("--json", action="store_true", help="print a line of JSON for each row")
    output.add_argument("--csv", action="store_true", help="print CSV with a header")
    parser.add_argument("--master", default=DEFAULT_MASTER, help=f"where Spark runs (default: {DEFAULT_MASTER})")
    parser.add_argument(
        "--conf", action="append", default=[], metavar="KEY=VALUE", help="a setting of Spark; may be repeated"
    )
    return parser


def _choices(pairs: Sequence[str], option: str, topics: Sequence[str]) -> dict[str, str]:
    choices = parse_pairs(pairs, option)
    for topic in choices:
        if topic not in topics:
            raise CommandError(f"{option}: {sql_text.no_such_topic(topic, topics)}")
    return choices


def _start(given: str | None, *, follow: bool) -> str:
    if given is None:
        return "latest" if follow else "earliest"
    if given == "latest" and not follow:
        raise CommandError("--from latest shows only what is yet to come: add --follow")
    if given in ("earliest", "latest"):
        return given
    try:
        moment = datetime.fromisoformat(given)
    except ValueError:
        raise CommandError(
            f"--from wants earliest, latest or a time such as 2026-01-31T12:00:00Z, not {given}"
        ) from None
    return str(int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000))


def _topics(client: dict[str, str]) -> list[str]:
    """Asked before Spark starts: whoever mistypes a name hears of it at once."""
    from ottla.client.settings import CONSUMER_SETTINGS
    from ottla.client.settings import client_settings as connection_settings

    async def ask() -> list[str]:
        async with connection_settings(client, also=CONSUMER_SETTINGS).cluster() as cluster:
            response = await cluster.retrying(lambda: cluster.metadata(None))
            return [topic.name for topic in response.topics if topic.name]

    try:
        return asyncio.run(ask())
    except Unreachable as error:
        raise CommandError(no_broker(client["bootstrap.servers"], error)) from error
