"""`kafka-jmx`, JmxTool: print metrics of a broker again and again, by the names of their MBeans.

It speaks Jolokia's protocol, which a broker serves beside its metrics (`metrics.listener`). A JMX URL as Kafka's tool
takes it names host and port, and those are asked.
"""

import argparse
import base64
import json
import re
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from ottla.cli.common.options import ToolParser
from ottla.cli.common.output import CommandError
from ottla.tls.trusting import trusting

DEFAULT_URL = "service:jmx:rmi:///jndi/rmi://127.0.0.1:9999/jmxrmi"
FORMATS = ("original", "properties", "csv", "tsv")
EVERYTHING = "*:*"
TIMEOUT_SECONDS = 20.0
WAIT_SECONDS_MAX = 10.0
WAIT_PAUSE_SECONDS = 0.2
_JAVA_FIELDS = {
    "yyyy": "%Y", "yy": "%y", "MM": "%m", "dd": "%d", "HH": "%H", "mm": "%M", "ss": "%S", "SSS": "%f", "EEE": "%a",
    "MMM": "%b", "a": "%p", "hh": "%I", "z": "%Z", "Z": "%z",
}  # fmt: skip

EXAMPLES = """
  %(prog)s --jmx-url http://127.0.0.1:9404 --one-time true
  %(prog)s --jmx-url http://127.0.0.1:9404 \\
      --object-name kafka.server:type=BrokerTopicMetrics,name=BytesInPerSec --attributes Count,OneMinuteRate
  %(prog)s --jmx-url http://127.0.0.1:9404 --object-name 'kafka.network:type=RequestMetrics,name=TotalTimeMs,*' \\
      --report-format properties --one-time true
"""

Report = dict[str, object]


def main(argv: Sequence[str] | None = None, prog: str = "ottla jmx") -> int:
    args = _parser(prog).parse(argv)
    client = JolokiaClient(endpoint(args.jmx_url, tls=args.jmx_ssl_enable), args.jmx_auth_prop)
    names = args.object_name or [EVERYTHING]
    attributes = [each for each in (args.attributes or "").split(",") if each]
    once = args.one_time == "true" or args.reporting_interval < 0
    if args.wait:
        _wait_for(client, names)
    columns: list[str] | None = None
    try:
        while True:
            report = client.report(names, attributes)
            if columns is None:
                columns = sorted(report)
                _print_head(columns, args.report_format)
            _print_report(report, columns, args)
            if once:
                return 0
            time.sleep(args.reporting_interval / 1000)
    except KeyboardInterrupt:
        return 130


def _parser(prog: str) -> ToolParser:
    parser = ToolParser(prog, "Print metrics of a broker by the names of their MBeans.", EXAMPLES)
    parser.add_argument(
        "--jmx-url",
        default=DEFAULT_URL,
        metavar="URL",
        help="where the broker's metrics.listener is: http://HOST:PORT, service:jmx:jolokia+http://HOST:PORT/jolokia, "
        f"or Kafka's form, of which host and port are taken (default: {DEFAULT_URL})",
    )
    parser.add_argument(
        "--object-name", action="append", metavar="NAME", help="an MBean, or a pattern of them; may be repeated"
    )
    parser.add_argument("--attributes", metavar="NAME,...", help="only these attributes (default: all)")
    parser.add_argument(
        "--reporting-interval", type=int, default=2000, metavar="MS", help="how often to print; -1 once (default: 2000)"
    )
    parser.add_argument(
        "--one-time", nargs="?", const="true", default="false", choices=("true", "false"), help="print once, then end"
    )
    parser.add_argument(
        "--date-format",
        metavar="FORMAT",
        help="of the time, as Java's SimpleDateFormat writes it (default: milliseconds)",
    )
    parser.add_argument("--report-format", choices=FORMATS, default="original", help="(default: original)")
    parser.add_argument("--jmx-auth-prop", metavar="USER=PASSWORD", help="who to log in as")
    parser.add_argument("--jmx-ssl-enable", action="store_true", help="connect with TLS")
    parser.add_argument("--wait", action="store_true", help="wait until all MBeans are there before printing")
    return parser


def endpoint(url: str, *, tls: bool) -> str:
    """The URL that Jolokia's requests go to."""
    text = url.removeprefix("service:jmx:jolokia+").removeprefix("service:jmx:")
    found = re.search(r"(?P<scheme>https?)://(?P<rest>[^/]+)(?P<path>/.*)?$", text)
    if found is not None:
        return f"{'https' if tls else found['scheme']}://{found['rest']}{(found['path'] or '/jolokia').rstrip('/')}"
    found = re.search(r"rmi://(?P<rest>[^/]*:\d+)/jmxrmi$", text)
    if found is None:
        raise CommandError(f"--jmx-url {url} is no address of a broker's metrics: http://HOST:PORT is")
    where = found["rest"] if not found["rest"].startswith(":") else f"127.0.0.1{found['rest']}"
    return f"{'https' if tls else 'http'}://{where}/jolokia"


class JolokiaClient:
    def __init__(self, url: str, login: str | None) -> None:
        self._url = url
        self._headers = {"Content-Type": "application/json"}
        if login is not None:
            user, equals, password = login.partition("=")
            if not equals:
                raise CommandError("--jmx-auth-prop wants USER=PASSWORD")
            self._headers["Authorization"] = "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()

    def ask(self, requests: list[Mapping[str, Any]]) -> list[dict[str, Any]]:
        request = urllib.request.Request(self._url, json.dumps(requests).encode(), self._headers)  # noqa: S310 (endpoint() knows http)
        context = trusting() if self._url.startswith("https") else None
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS, context=context) as answer:  # noqa: S310
                replies: list[dict[str, Any]] = json.load(answer)
                return replies
        except urllib.error.HTTPError as error:
            with error:
                raise CommandError(f"{self._url} answers {error.code} {error.reason}") from None
        except (OSError, ValueError) as error:
            reason = error.reason if isinstance(error, urllib.error.URLError) else error
            raise CommandError(f"{self._url} cannot be read: {reason}; is metrics.listener set there?") from None

    def search(self, name: str) -> list[str]:
        (reply,) = self.ask([{"type": "search", "mbean": name}])
        return list(reply["value"]) if reply["status"] == 200 else []

    def report(self, names: Sequence[str], attributes: Sequence[str]) -> Report:
        """`MBean:attribute` and values, of all MBeans that the names mean."""
        found = [mbean for name in names for mbean in ([name] if not _is_pattern(name) else self.search(name))]
        if not found:
            raise CommandError(f"No matched attributes for the queried objects {', '.join(names)}.")
        report: Report = {}
        for mbean, reply in zip(found, self.ask([{"type": "read", "mbean": mbean} for mbean in found]), strict=True):
            if reply["status"] != 200:
                raise CommandError(f"{mbean}: {reply['error']}")
            for attribute, value in reply["value"].items():
                if not attributes or attribute in attributes:
                    report[f"{mbean}:{attribute}"] = value
        if not report:
            raise CommandError(f"No matched attributes for the queried objects {', '.join(names)}.")
        return report


def _is_pattern(name: str) -> bool:
    return "*" in name or "?" in name


def _wait_for(client: JolokiaClient, names: Sequence[str]) -> None:
    deadline = time.monotonic() + WAIT_SECONDS_MAX
    while missing := [name for name in names if not client.search(name)]:
        if time.monotonic() > deadline:
            raise CommandError(
                f"Could not find all requested object names after {WAIT_SECONDS_MAX:g} s. Missing {missing}"
            )
        time.sleep(WAIT_PAUSE_SECONDS)


def _print_head(columns: list[str], report_format: str) -> None:
    if report_format == "original":
        print(",".join(f'"{each}"' for each in ("time", *columns)))
    elif report_format in ("csv", "tsv"):
        print(("," if report_format == "csv" else "\t").join(f'"{each}"' for each in ("time", *columns)))


def _print_report(report: Report, columns: list[str], args: argparse.Namespace) -> None:
    now = _time(args.date_format)
    if args.report_format == "properties":
        print("\n".join([f"time={now}", *(f"{name}={report[name]}" for name in columns if name in report), ""]))
    else:
        values = [now, *(str(report.get(name, "")) for name in columns)]
        if args.report_format in ("csv", "tsv"):
            values = [f'"{value}"' for value in values]
        print(("\t" if args.report_format == "tsv" else ",").join(values))
    sys.stdout.flush()


def _time(date_format: str | None) -> str:
    if date_format is None:
        return str(time.time_ns() // 1_000_000)
    now = datetime.now(UTC).astimezone()
    # Longest first: MMM is no MM. Python has microseconds where Java has milliseconds.
    pattern = "|".join(sorted(_JAVA_FIELDS, key=len, reverse=True))
    return re.sub(
        rf"'([^']*)'|({pattern})",
        lambda found: (
            found[1]
            if found[1] is not None
            else now.strftime(_JAVA_FIELDS[found[2]])[: 3 if found[2] == "SSS" else None]
        ),
        date_format,
    )
