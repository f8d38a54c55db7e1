"""How lines of the log look: text for people, or a JSON object each for what collects logs; and the options of both."""

import argparse
import json
import logging
import os
import time
import traceback

TEXT, JSON = "text", "json"
FORMATS = (TEXT, JSON)
LEVELS = ("debug", "info", "warning", "error")
VARIABLE = "OTTLA_LOG_FORMAT"
PLAIN = "%(asctime)s %(levelname)s %(name)s: %(message)s"
_LEVELS = {"WARNING": "WARN", "CRITICAL": "FATAL"}
"""Kafka's words for them."""


class JsonFormatter(logging.Formatter):
    """One line, one object: time (UTC), level, logger, message, thread, and what went wrong."""

    def format(self, record: logging.LogRecord) -> str:
        whole = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        line = {
            "time": f"{whole}.{int(record.msecs):03d}Z",
            "level": _LEVELS.get(record.levelname, record.levelname),
            "logger": record.name,
            "message": record.getMessage(),
            "thread": record.threadName,
        }
        if record.exc_info:
            line["error"] = "".join(traceback.format_exception(*record.exc_info)).rstrip()
        return json.dumps(line, ensure_ascii=False)


def formatter(log_format: str) -> logging.Formatter:
    return JsonFormatter() if log_format == JSON else logging.Formatter(PLAIN)


def add_log_level(parser: argparse.ArgumentParser, default: str) -> None:
    parser.add_argument(
        "--log-level", choices=LEVELS, default=default, help=f"how much to log on stderr (default: {default})"
    )


def add_log_format(parser: argparse.ArgumentParser) -> None:
    default = os.environ.get(VARIABLE, TEXT)
    parser.add_argument(
        "--log-format",
        choices=FORMATS,
        default=default if default in FORMATS else TEXT,
        help=f"text for people, or a JSON object a line (default: ${VARIABLE}, or text)",
    )
