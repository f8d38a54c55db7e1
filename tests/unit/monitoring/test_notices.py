"""Who is told, how often, and that it is over; in which words, through a real HTTP server and a real mail server."""

import json
import socketserver
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.model.names import TopicPartition
from ottla.monitoring.lag.book import GroupLag, LagBook
from ottla.monitoring.lag.notices import Notice, NoticeBoard, NotifierRule
from ottla.monitoring.lag.notifiers import Email, Mail, NotSent, Webhook, WebhookTarget, as_json, as_mail
from ottla.monitoring.lag.rules import Rules, Status
from ottla.monitoring.lag.templates import BadTemplate, Template, data_of
from ottla.monitoring.readings import GroupReading, Owner, Reading

P = TopicPartition("orders", 0)


def group(status: Status, name: str = "readers") -> GroupLag:
    return GroupLag(name, status, 1.0, (), None, 5, "Stable", 1)


def stalled() -> GroupLag:
    book = LagBook(Rules())
    for n in range(10):
        reading = GroupReading({P: 50}, {P: Owner("10.0.0.7", "app")})
        book.note(Reading({P: 100 + n}, {"readers": reading}, {"orders": 1}, whole=True), n * 1000)
    found = book.group("readers", 9000)
    assert found is not None
    return found


def board(*rules: NotifierRule) -> NoticeBoard:
    ids = iter(range(1000))
    return NoticeBoard(rules, lambda: f"id-{next(ids)}")


def test_an_incident_is_opened_repeated_and_closed_under_one_id() -> None:
    notes = board(NotifierRule("a", interval_ms=60_000, send_close=True))
    told = [
        (now, notice.kind, notice.incident, notice.start_ms)
        for now, status in [
            (0, Status.OK),
            (10, Status.WARN),
            (50, Status.ERR),
            (60_010, Status.WARN),
            (70_000, Status.OK),
        ]
        for notice in notes.note("c", group(status), now)
    ]
    assert told == [
        (10, "open", "id-0", 10), (60_010, "open", "id-0", 10), (70_000, "close", "id-0", 10),
    ]  # fmt: skip
    assert [each.incident for each in notes.note("c", group(Status.ERR), 80_000)] == ["id-1"]


@given(st.lists(st.tuples(st.sampled_from([Status.OK, Status.WARN, Status.ERR]), st.integers(0, 100)), max_size=30))
def test_what_is_closed_was_opened_and_nobody_is_told_too_often(steps: list[tuple[Status, int]]) -> None:
    rules = [
        NotifierRule("often", Status.WARN, 50, send_close=True),
        NotifierRule("bad", Status.ERR, 50, send_close=True),
        NotifierRule("once", Status.WARN, 50, send_once=True),
    ]
    notes = board(*rules)
    now = 0
    open_since: dict[str, int] = {}
    for status, step in steps:
        now += step
        for notice in notes.note("c", group(status), now):
            if notice.is_close:
                assert status is Status.OK
                assert notice.notifier != "once"
                del open_since[notice.notifier]
            else:
                assert status >= (Status.ERR if notice.notifier == "bad" else Status.WARN)
                last = open_since.get(notice.notifier)
                assert last is None or (notice.notifier != "once" and now - last >= 50)
                open_since[notice.notifier] = now
        if status is Status.OK:
            assert not [name for name in open_since if name != "once"], "everything open was closed"
            open_since.clear()


def test_groups_that_nobody_wants_and_groups_that_are_gone() -> None:
    notes = board(NotifierRule("a", deny="^test-", send_close=True), NotifierRule("b", allow="^test-"))
    assert [each.notifier for each in notes.note("c", group(Status.ERR, "test-1"), 0)] == ["b"]
    assert [each.notifier for each in notes.note("c", group(Status.ERR), 0)] == ["a"]
    notes.keep_only("c", [])
    assert notes.note("c", group(Status.OK), 1) == [], "its incident ended with it"


NOTICE = Notice("a", "id-0", 1_700_000_000_000, False, "local", stalled())


@pytest.mark.parametrize(
    ("template", "filled"),
    [
        ('{"id":"{{.ID}}","app":"{{index .Extras "app"}}"}', '{"id":"id-0","app":"burrow"}'),
        ("{{if eq .Result.Status 2}}WARN{{else}}ERR{{end}}", "ERR"),
        ('{{.Start.Format "Jan 02, 2006 15:04:05 UTC"}}', "Nov 14, 2023 22:13:20 UTC"),
        ("{{range .Result.Partitions}}{{.Status.String}} {{.Topic}}:{{.Partition}}{{end}}", "STALL orders:0"),
        ("{{range .Result.Partitions}}({{.Start.Offset}}, {{.End.Lag}}){{end}}", "(50, 59)"),
        ("{{len .Result.Partitions}} of {{.Result.TotalPartitions}}, {{.Result.Complete}}", "1 of 1, 1"),
        ("{{with .Result.Maxlag}}{{.CurrentLag}}{{end}}", "59"),
        ("{{$c := partitioncounts .Result.Partitions}}{{index $c \"stall\"}}", "1"),
        (
            "{{range $s, $t := .Result.Partitions | topicsbystatus}}{{$s}}={{range $t}}{{.}}{{end}}{{end}}",
            "STALL=orders",
        ),
        ("a {{- /* nothing */ -}} b", "ab"),
        ("{{if and (gt .Result.TotalLag 10) (not false)}}much{{else if false}}x{{end}}", "much"),
        ('{{printf "%v-%d" .Result.Group 3}}', "readers-3"),
        ("{{range .Result.Nothing}}{{end}}", None),
        ("{{if}}", None),
        ("{{call .ID}}", None),
        ("{{end}}", None),
    ],
)  # fmt: skip
def test_burrows_templates_are_filled_in(template: str, filled: str | None) -> None:
    def render() -> str:
        return Template(template).render(data_of(NOTICE, {"app": "burrow"}))

    if filled is None:
        with pytest.raises(BadTemplate):
            render()
    else:
        assert render() == filled


def test_partitions_as_json_are_burrows() -> None:
    text = Template("{{.Result.Partitions | jsonencoder}}").render(data_of(NOTICE, {}))
    (partition,) = json.loads(text)
    assert (partition["topic"], partition["status"], partition["current_lag"]) == ("orders", "STALL", 59)


@pytest.fixture
def hook() -> Iterator[tuple[str, list[tuple[str, str, dict[str, object]]]]]:
    """A real HTTP server that remembers what it was told; it refuses what comes to /refuse."""
    told: list[tuple[str, str, dict[str, object]]] = []

    class Handler(BaseHTTPRequestHandler):
        def handle_one(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            told.append((self.command, self.path, json.loads(body)))
            self.send_response(500 if self.path == "/refuse" else 204)
            self.end_headers()

        do_POST = do_DELETE = handle_one  # noqa: N815 - the library's names

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}", told
        server.shutdown()
        thread.join()


def test_a_webhook_is_told_of_open_and_close(hook: tuple[str, list[tuple[str, str, dict[str, object]]]]) -> None:
    url, told = hook
    notifier = Webhook(
        NotifierRule("a"),
        WebhookTarget(lambda notice: url + "/open", "POST", as_json),
        WebhookTarget(lambda notice: f"{url}/{notice.incident}", "DELETE", as_json),
        login=("me", "secret"),
    )
    notifier.send(NOTICE)
    notifier.send(NOTICE._replace(is_close=True))
    assert [(method, path, body["event"]) for method, path, body in told] == [
        ("POST", "/open", "open"), ("DELETE", "/id-0", "close"),
    ]  # fmt: skip
    assert told[0][2]["result"]["partitions"][0]["status"] == "STALL"  # type: ignore[index]


@pytest.mark.parametrize("path", ["/refuse", None])
def test_a_webhook_that_fails_says_so(path: str | None, hook: tuple[str, list[object]]) -> None:
    url = "http://127.0.0.1:1" if path is None else hook[0] + path
    target = WebhookTarget(lambda notice: url, "POST", as_json)
    with pytest.raises(NotSent):
        Webhook(NotifierRule("a"), target, target).send(NOTICE)


def test_a_mail_arrives() -> None:
    """At a mail server that speaks as much SMTP as a mail needs."""
    lines: list[str] = []

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            self.wfile.write(b"220 here\r\n")
            in_data = False
            for raw in self.rfile:
                line = raw.decode().rstrip("\r\n")
                lines.append(line)
                if in_data:
                    in_data = line != "."
                    if not in_data:
                        self.wfile.write(b"250 taken\r\n")
                elif line.upper().startswith("DATA"):
                    in_data = True
                    self.wfile.write(b"354 go on\r\n")
                elif line.upper() == "QUIT":
                    self.wfile.write(b"221 bye\r\n")
                    return
                else:
                    self.wfile.write(b"250 ok\r\n")

    with socketserver.TCPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        mail = Mail("127.0.0.1", server.server_address[1], "monitor@example.com", ("ops@example.com",))
        Email(NotifierRule("a"), mail, as_mail, as_mail).send(NOTICE)
        server.shutdown()
        thread.join()
    text = "\n".join(lines)
    assert "Subject: [ottla] consumer group readers of local is in trouble: ERR" in text
    assert "To: ops@example.com" in text
    assert "STALL orders:0 (offset 50, 59 unread)" in text
