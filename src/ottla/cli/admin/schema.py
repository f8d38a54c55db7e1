"""`ottla schema`: schemas of a registry, from the command line."""

import argparse
import json
import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from ottla.cli.common.options import ToolParser, read_text
from ottla.cli.common.output import CommandError, note, print_columns, print_json
from ottla.cli.common.passwords import LOGIN_SOURCES, login_from, warn_of_clear_login
from ottla.model.defaults import DEFAULT_REGISTRY, REGISTRY_VARIABLE
from ottla.registry.client import RegistryClient
from ottla.registry.differences import differences
from ottla.registry.errors import Code, RegistryError

EXAMPLES = """
  %(prog)s register orders-value order.avsc
  %(prog)s register orders-value order.proto --reference item.proto=items-value:1
  %(prog)s get orders-value                       the latest; --version 3, or --id 7
  %(prog)s list                                   all subjects with their versions
  %(prog)s check orders-value new.avsc            would it be taken? exit code 1 and the reasons if not
  %(prog)s diff orders-value 1 2                  two versions; or a version and a file
  %(prog)s delete orders-value --version 1        hidden; --permanent removes it for good
  %(prog)s set-compatibility FULL --subject orders-value
  %(prog)s export > schemas.jsonl                 all versions with their ids, one a line
  %(prog)s import schemas.jsonl                   into an empty registry, with the same ids
  %(prog)s --user file:login.txt list             login.txt holds NAME:PASSWORD

The type is read off the file's name (.avsc, .proto, .json), unless --type says it.
"""
USER_VARIABLE = "OTTLA_REGISTRY_USER"
_TYPES = {".avsc": "AVRO", ".avro": "AVRO", ".proto": "PROTOBUF", ".json": "JSON", ".jsonschema": "JSON"}
_REASON = re.compile(r"errorType:'(?P<kind>[^']*)', description:'(?P<text>.*?)', path:'(?P<path>[^']*)'")


def main(argv: Sequence[str] | None = None, prog: str = "ottla schema") -> int:
    args = _parser(prog).parse(argv)
    warn_of_clear_login(args.user or "", "--user")
    user, password = login_from(args.user or os.environ.get(USER_VARIABLE, ""), "--user")
    with RegistryClient(args.registry, user=user, password=password, ca_file=args.ca) as client:
        try:
            run: Callable[[RegistryClient, argparse.Namespace], int] = args.run
            return run(client, args)
        except RegistryError as error:
            raise CommandError(_in_words(error)) from error


def _parser(prog: str) -> ToolParser:
    parser = ToolParser(prog, "Register, read, compare and delete schemas.", EXAMPLES)
    parser.usage = "%(prog)s [options] COMMAND [options of the command]"
    parser.add_argument(
        "--registry",
        default=os.environ.get(REGISTRY_VARIABLE) or DEFAULT_REGISTRY,
        metavar="URL,...",
        help=f"where the registry is (default: ${REGISTRY_VARIABLE}, or else {DEFAULT_REGISTRY})",
    )
    parser.add_argument("--user", metavar="LOGIN", help=f"to log in: {LOGIN_SOURCES} (default: ${USER_VARIABLE})")
    parser.add_argument("--ca", metavar="FILE", help="certificates to trust, for https")
    parser.add_argument("--json", action="store_true", help="print JSON instead of text")
    commands = parser.add_subparsers(required=True, metavar="COMMAND", parser_class=argparse.ArgumentParser)

    def command(name: str, run: Callable[[RegistryClient, argparse.Namespace], int], words: str) -> Any:
        made = commands.add_parser(name, help=words, allow_abbrev=False)
        made.set_defaults(run=run)
        return made

    register = command("register", _register, "add a version, if it is compatible")
    check = command("check", _check, "say whether it would be taken, and why not")
    for each in (register, check):
        each.add_argument("subject")
        each.add_argument("file", help="the schema; - is standard input")
        each.add_argument("--type", choices=("AVRO", "JSON", "PROTOBUF"))
        each.add_argument("--reference", action="append", default=[], metavar="NAME=SUBJECT:VERSION")
        each.add_argument("--normalize", action="store_true", help="free of order where order says nothing")
    check.add_argument("--version", default=None, help="against this version, not those that the level asks for")
    get = command("get", _get, "print a schema")
    get.add_argument("subject", nargs="?")
    get.add_argument("--version", default="latest")
    get.add_argument("--id", type=int)
    listing = command("list", _list, "subjects, or the versions of one")
    listing.add_argument("subject", nargs="?")
    listing.add_argument("--deleted", action="store_true", help="those that are deleted, too")
    diff = command("diff", _diff, "what is different between two versions, or a version and a file")
    diff.add_argument("subject")
    diff.add_argument("old", help="a version, latest, or a file")
    diff.add_argument("new", nargs="?", default="latest", help="a version, latest, or a file (default: latest)")
    delete = command("delete", _delete, "hide a subject or a version; with --permanent remove it")
    delete.add_argument("subject")
    delete.add_argument("--version")
    delete.add_argument("--permanent", action="store_true")
    level = command("set-compatibility", _set_level, "of a subject, or of all that have none of their own")
    level.add_argument("level")
    level.add_argument("--subject")
    command("export", _export, "all versions, one JSON object a line")
    importing = command("import", _import, "what export wrote, with the same ids and versions")
    importing.add_argument("file", help="- is standard input")
    return parser


def _register(client: RegistryClient, args: argparse.Namespace) -> int:
    query = {"normalize": "true"} if args.normalize else None
    made = client.call("POST", f"/subjects/{_part(args.subject)}/versions", query, _request(args))
    if args.json:
        print_json(made)
    else:
        print(f"{args.subject} version {made.get('version', '?')}, id {made['id']}")
    return 0


def _check(client: RegistryClient, args: argparse.Namespace) -> int:
    path = f"/compatibility/subjects/{_part(args.subject)}/versions"
    path += f"/{args.version}" if args.version else ""
    found = client.call("POST", path, {"verbose": "true"}, _request(args))
    if args.json:
        print_json(found)
    elif found["is_compatible"]:
        print("compatible")
    else:
        print("not compatible:")
        for line in reasons(found.get("messages", [])):
            print(f"  {line}")
    return 0 if found["is_compatible"] else 1


def reasons(messages: Sequence[str]) -> list[str]:
    """The sentences of a registry's messages; what has no sentence is shown as it is."""
    found = []
    for message in messages:
        match = _REASON.search(message)
        if match:
            found.append(f"{match['text']} (at {match['path']})")
        elif "oldSchemaVersion" in message:
            found.append(f"compared with version {message.strip('{}').partition(':')[2].strip()}")
        elif not message.startswith(("{oldSchema:", "{compatibility:", "{validateFields")):
            found.append(message)
    return found


def _get(client: RegistryClient, args: argparse.Namespace) -> int:
    if (args.subject is None) == (args.id is None):
        raise CommandError("say which schema: a subject, or --id N")
    if args.id is not None:
        found = client.get(f"/schemas/ids/{args.id}")
    else:
        found = client.get(f"/subjects/{_part(args.subject)}/versions/{args.version}")
    if args.json:
        print_json(found)
    else:
        print(_pretty(found["schema"], found.get("schemaType") or "AVRO"))
    return 0


def _list(client: RegistryClient, args: argparse.Namespace) -> int:
    query = {"deleted": "true"} if args.deleted else {}
    subjects = [args.subject] if args.subject else client.get("/subjects", query)
    found = {name: client.get(f"/subjects/{_part(name)}/versions", query) for name in subjects}
    if args.json:
        print_json(found)
    else:
        print_columns([(name, ", ".join(map(str, versions))) for name, versions in found.items()], gap=2)
    return 0


def _diff(client: RegistryClient, args: argparse.Namespace) -> int:
    (old, kind), (new, _) = (_text(client, args.subject, which) for which in (args.old, args.new))
    lines = differences(kind, old, new)
    if args.json:
        print_json(lines)
    else:
        print("\n".join(lines) if lines else "no difference")
    return 0


def _text(client: RegistryClient, subject: str, which: str) -> tuple[str, str]:
    if which == "latest" or which.lstrip("-").isdigit():
        found = client.version(subject, which)
        return found.text, found.schema_type
    return read_text(which), _type_of(which, None)


def _delete(client: RegistryClient, args: argparse.Namespace) -> int:
    path = f"/subjects/{_part(args.subject)}" + (f"/versions/{args.version}" if args.version else "")
    if args.permanent:
        try:
            client.call("DELETE", path)
        except RegistryError as error:
            if error.code not in (Code.SUBJECT_SOFT_DELETED, Code.VERSION_SOFT_DELETED):
                raise
    found = client.call("DELETE", path, {"permanent": "true"} if args.permanent else None)
    numbers = found if isinstance(found, list) else [found]
    if args.json:
        print_json(numbers)
    else:
        how = "removed for good" if args.permanent else "deleted; its id still resolves"
        print(f"{args.subject} version {', '.join(map(str, numbers))}: {how}")
    return 0


def _set_level(client: RegistryClient, args: argparse.Namespace) -> int:
    path = f"/config/{_part(args.subject)}" if args.subject else "/config"
    found = client.call("PUT", path, body={"compatibility": args.level.upper()})
    if args.json:
        print_json(found)
    else:
        print(f"{args.subject or 'all other subjects'}: {found['compatibility']}")
    return 0


def _export(client: RegistryClient, args: argparse.Namespace) -> int:
    """Oldest ids first, so that what is named comes before who names it."""
    offset, found = 0, []
    while page := client.get("/schemas", {"subjectPrefix": ":*:", "offset": str(offset), "limit": "1000"}):
        found += page
        offset += len(page)
    for each in sorted(found, key=lambda each: (each["id"], each["version"])):
        print(json.dumps(each, ensure_ascii=False))
    note(f"{len(found)} versions")
    return 0


def _import(client: RegistryClient, args: argparse.Namespace) -> int:
    """The registry is in import mode meanwhile; a subject that is there already stops it before anything is written."""
    text = sys.stdin.read() if args.file == "-" else read_text(args.file)
    wanted = [json.loads(line) for line in text.splitlines() if line.strip()]
    before = client.get("/mode")["mode"]
    client.call("PUT", "/mode", body={"mode": "IMPORT"})
    try:
        for each in wanted:
            kept = ("schema", "schemaType", "references", "metadata", "ruleSet", "id", "version")
            body = {key: each[key] for key in kept if key in each}
            client.call("POST", f"/subjects/{_part(each['subject'])}/versions", body=body)
    finally:
        client.call("PUT", "/mode", {"force": "true"}, {"mode": before})
    print(f"{len(wanted)} versions imported")
    return 0


def _request(args: argparse.Namespace) -> dict[str, Any]:
    text = sys.stdin.read() if args.file == "-" else read_text(args.file)
    kind = _type_of(args.file, args.type)
    body: dict[str, Any] = {"schema": text}
    if kind != "AVRO":
        body["schemaType"] = kind
    references = [_reference(each) for each in args.reference]
    return body | ({"references": references} if references else {})


def _reference(text: str) -> Mapping[str, Any]:
    name, equals, where = text.partition("=")
    subject, colon, version = where.rpartition(":")
    if not equals or not colon or not version.isdigit():
        raise CommandError(f"--reference wants NAME=SUBJECT:VERSION, not `{text}`")
    return {"name": name, "subject": subject, "version": int(version)}


def _type_of(file: str, given: str | None) -> str:
    kind = given or _TYPES.get(Path(file).suffix.lower())
    if kind is None:
        raise CommandError(f"{file}: say what it is with --type AVRO, JSON or PROTOBUF")
    return kind


def _pretty(text: str, kind: str) -> str:
    return text.rstrip("\n") if kind == "PROTOBUF" else json.dumps(json.loads(text), indent=2, ensure_ascii=False)


def _part(subject: str) -> str:
    return quote(subject, safe="")


def _in_words(error: RegistryError) -> str:
    if error.code in (Code.INCOMPATIBLE, 409):
        found = [f"\n  {match['text']} (at {match['path']})" for match in _REASON.finditer(str(error))]
        if found:
            return f"not compatible:{''.join(found)}"
    if error.code == 503:
        return f"{error}; start one with `ottla up` or `ottla registry`, or name another with --registry"
    return f"{error} ({error.code})"
