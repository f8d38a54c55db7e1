"""Confluent's console tools for values with a schema: console-producer and -consumer, told how."""

from collections.abc import Sequence

from ottla.cli.common.passwords import warn_of_clear_login
from ottla.cli.data import console_consumer, console_producer

FORMATTER = "ottla.cli.data.schema_values:SchemaFormatter"
CONSUMER_EXAMPLES = """
  {prog} --topic orders --from-beginning
  {prog} --topic orders --property print.key=true --property print.schema.ids=true
  {prog} --topic orders --property schema.registry.url=http://registry:8081 \\
      --property basic.auth.user.info=file:login.txt     NAME:PASSWORD stands in it; env:VARIABLE works, too

Each record is printed as JSON, by the schema that its id names.
"""
PRODUCER_EXAMPLES = """
  {prog} --topic orders --property value.schema.file=order{suffix}
  {prog} --topic orders --property value.schema.id=7 < orders.jsonl
  {prog} --topic orders --property value.schema.file=order{suffix} --property parse.key=true \\
      --property key.serializer=org.apache.kafka.common.serialization.StringSerializer

Each line is one value as JSON. The schema is registered as TOPIC-value, unless value.schema.id names one.
"""
_LOGIN = "basic.auth.user.info="
_SUFFIXES = {"SchemaReader": ".avsc", "JsonSchemaReader": ".json", "ProtobufReader": ".proto"}


def consume(argv: Sequence[str], prog: str) -> int:
    """`--property schema.registry.url=URL` names the registry; the schema of each record is the one of its id."""
    own = ["--formatter", FORMATTER] if argv else []
    return console_consumer.main([*_spelled(argv), *own], prog, CONSUMER_EXAMPLES.format(prog=prog))


def produce(argv: Sequence[str], prog: str, reader: str) -> int:
    """`--property value.schema='...'` is registered under the topic's name; every line is one value as JSON."""
    arguments = _spelled(argv)
    topic = next((arguments[at + 1] for at, each in enumerate(arguments[:-1]) if each == "--topic"), "")
    own = ["--line-reader", f"ottla.cli.data.schema_values:{reader}", "--property", f"topic={topic}"] if argv else []
    examples = PRODUCER_EXAMPLES.format(prog=prog, suffix=_SUFFIXES[reader])
    return console_producer.main([*arguments, *own], prog, examples)


def _spelled(argv: Sequence[str]) -> list[str]:
    """`--topic=x` as two words. A login in clear is warned of: here it is known to come from the command line."""
    found: list[str] = []
    for each in argv:
        name, equals, value = each.partition("=")
        found += [name, value] if equals and name.startswith("--") and " " not in name else [each]
    for each in found:
        if each.startswith(_LOGIN):
            warn_of_clear_login(each.removeprefix(_LOGIN), _LOGIN.rstrip("="))
    return found
