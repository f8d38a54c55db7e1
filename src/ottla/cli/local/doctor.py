"""`ottla doctor`: looks at everything that a broker or a pipeline needs here, and says how to mend what is wrong."""

import asyncio
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ottla.cli.common.options import BOOTSTRAP_VARIABLE, ToolParser, bootstrap_of
from ottla.cli.common.output import print_json
from ottla.cli.local.broker_process import DEFAULT_DATA

if TYPE_CHECKING:
    import argparse

    from ottla.cli.local.doctor_checks import Finding

EXAMPLES = """
  %(prog)s
  %(prog)s --spark
  %(prog)s --host --data /var/lib/ottla
  %(prog)s --bootstrap-server kafka-1:9092 --json
"""
MARKS = {
    "ok": "[green]ok  [/green]",
    "warn": "[yellow]warn[/yellow]",
    "fail": "[red]fail[/red]",
    "skipped": "[dim]-   [/dim]",
}


def main(argv: Sequence[str] | None = None, prog: str = "ottla doctor") -> int:
    parser = ToolParser(
        prog, "Look at everything a broker or a pipeline needs here.", EXAMPLES, help_without_arguments=False
    )
    parser.add_argument("--bootstrap-server", metavar="HOST:PORT,...", help="a broker that must answer")
    parser.add_argument("--data", default=DEFAULT_DATA, metavar="DIR", help=f"data folder (default: {DEFAULT_DATA})")
    parser.add_argument(
        "--host", action="store_true", help="look at how this machine is set up for a broker, and nothing else"
    )
    parser.add_argument("--spark", action="store_true", help="start Spark and run a tiny job, which takes a while")
    parser.add_argument("--master", default="local[2]", help="where --spark runs its job (default: local[2])")
    parser.add_argument("--json", action="store_true", help="print one JSON document instead of text")
    args = parser.parse(argv)
    if args.json:
        findings = list(_examine(args))
        print_json({"ok": not _failed(findings), "checks": [_as_json(finding) for finding in findings]})
    else:
        findings = _tell(_examine(args))
    return 1 if _failed(findings) else 0


def _examine(args: "argparse.Namespace") -> "Iterator[Finding]":
    """One after the other, because some take a while and a person is looking on."""
    from ottla.cli.local import doctor_checks as checks
    from ottla.cli.local import doctor_spark as spark
    from ottla.cli.local.doctor_host import check_host

    if args.host:
        yield from check_host(Path(args.data))
        return
    yield checks.check_python()
    yield from checks.check_packages()
    if spark.spark_installed():
        java = spark.check_java(os.environ)
        scripts = spark.check_scripts(os.environ)
        yield java
        yield scripts
        yield spark.check_kernel()
        yield checks.check_scratch(os.environ)
        can_start = checks.State.FAIL not in (java.state, scripts.state)
        yield spark.check_session(args.master) if args.spark and can_start else spark.session_not_tried()
    asked_for = bool(args.bootstrap_server or os.environ.get(BOOTSTRAP_VARIABLE))
    yield asyncio.run(checks.check_broker(bootstrap_of(args), asked_for=asked_for))
    yield checks.check_folder("data folder", Path(args.data), "--data DIR")
    yield checks.check_open_files()
    yield checks.check_memory()
    yield checks.check_clock()


def _tell(findings: "Iterator[Finding]") -> "list[Finding]":
    from rich.console import Console
    from rich.markup import escape

    console = Console(highlight=False, soft_wrap=True)
    told = []
    for finding in findings:
        told.append(finding)
        console.print(f"{MARKS[finding.state]} [bold]{escape(finding.check)}[/bold]: {escape(finding.found)}")
        if finding.mend:
            console.print(f"     [bold]to mend it:[/bold] {escape(finding.mend)}")
    failed = len(_failed(told))
    warned = sum(finding.state == "warn" for finding in told)
    if failed or warned:
        console.print(f"\n{failed} to mend, {warned} to look at.")
    else:
        console.print("\nAll is well.")
    return told


def _failed(findings: "list[Finding]") -> "list[Finding]":
    return [finding for finding in findings if finding.state == "fail"]


def _as_json(finding: "Finding") -> dict[str, str | None]:
    return {"check": finding.check, "state": finding.state, "found": finding.found, "mend": finding.mend}
