"""Options that the commands of `ottla pipeline` share."""

import argparse
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from ottla.cli.options import BOOTSTRAP_VARIABLE, DEFAULT_BOOTSTRAP, parse_pairs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from ottla.pipelines.secrets import Secrets

DEFAULT_STATE_DIR = ".ottla/pipelines"


def add_files(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help="pipeline files: .yaml, .sql or .py")


def add_file(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", type=Path, metavar="FILE", help="a pipeline file: .yaml, .sql or .py")


def add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON for scripts instead of text for people")


def add_state_dir(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--state-dir",
        type=Path,
        default=Path(DEFAULT_STATE_DIR),
        metavar="DIR",
        help=f"where checkpoints and the status are kept (default: {DEFAULT_STATE_DIR})",
    )


def add_bootstrap(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--bootstrap-server",
        metavar="HOST:PORT,...",
        help=f"the brokers (default: the file's `bootstrap`, ${BOOTSTRAP_VARIABLE}, or else {DEFAULT_BOOTSTRAP})",
    )


def add_version(parser: argparse.ArgumentParser, text: str, *, required: bool = True) -> None:
    """`--version NAME`, for a parser that does not show Ottla's own version by this name."""
    parser.add_argument("--version", dest="output_version", metavar="NAME", required=required, help=text)


def add_spark(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("Spark")
    group.add_argument("--master", default="local[*]", help="where Spark runs (default: local[*])")
    group.add_argument(
        "--conf", action="append", default=[], metavar="KEY=VALUE", help="a setting of Spark; may be repeated"
    )


def spark_session(args: argparse.Namespace, name: str) -> "SparkSession":
    from ottla.pipelines.runner.session import pipeline_session

    return pipeline_session(name, args.master, parse_pairs(args.conf, "--conf"))


def hidden(text: str, secrets: "Iterable[Secrets]") -> str:
    for each in secrets:
        text = each.hide(text)
    return text
