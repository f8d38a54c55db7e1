"""What people do with a console, through its forms and through its API, and what then is so in the cluster."""

import json
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import Any, ClassVar

from ottla.testing.waiting import wait_until

from .conftest import CLUSTER, Open, Site

Unique = Callable[[str], str]


def test_a_topic_from_its_creation_to_its_end(site: Site, unique: Unique) -> None:
    name = unique("life")
    made = site.submit("/topics", {"name": name, "partitions": "2", "settings": "retention.ms=60000"}, on="/topics/new")
    assert made.status == 303
    told = f'role="status">topic {name} is created</p>'
    assert told in site.send("GET", made.headers["location"]).text
    assert told not in site.page(f"/topics/{name}?said=topic+{name}+is+created&seal=00").text
    settings = f"/topics/{name}/settings"
    preview = site.page(f"{settings}?set.retention.ms=120000&set.cleanup.policy=compact").text
    assert "Save 2 changes" in preview
    assert "--add-config" in preview
    assert site.submit(settings, {"set.retention.ms": "120000"}, on=f"{settings}?set.retention.ms=1").status == 303
    assert site.submit(settings, {"set.retention.ms": "120000"}, on=f"{settings}?set.retention.ms=1").status == 400
    value = next(each for each in site.api(settings)["settings"] if each["name"] == "retention.ms")
    assert (value["value"], value["own"], value["default"]) == ("120000", True, "604800000")
    manage = f"/topics/{name}/manage"
    assert site.submit(f"/topics/{name}/partitions", {"partitions": "5"}, on=manage).status == 303
    assert site.api(f"/topics/{name}")["topic"]["partitions"] == 5
    site.do(f"/topics/{name}/produce", value="1", value_form="text", partition=3, count=10)
    unsure = site.submit(f"/topics/{name}/delete-records", {"partition": "3", "confirm": "yes"}, on=manage)
    assert unsure.status == 400
    sure = {"partition": "3", "offset": "4", "confirm": name}
    assert site.submit(f"/topics/{name}/delete-records", sure, on=manage).status == 303
    assert site.api(f"/topics/{name}")["partitions"][3]["start"] == 4
    assert site.submit(f"/topics/{name}/delete", {"confirm": "other"}, on=manage).status == 400
    assert site.submit(f"/topics/{name}/delete", {"confirm": name}, on=manage).status == 303
    assert site.page(f"/topics/{name}").status == 404


def test_records_are_produced_found_and_exported(site: Site, unique: Unique) -> None:
    name = unique("records")
    site.do("/topics", name=name, partitions=4)
    form = {"key": "k-1", "key_form": "text", "value": '{"order": {"id": 42}}', "value_form": "json", "headers": "a=b"}
    sent = site.submit(f"/topics/{name}/produce", form, on=f"/topics/{name}/produce")
    assert sent.status == 303
    assert "k-1" in site.send("GET", sent.headers["location"]).text
    for number in range(20):
        site.do(f"/topics/{name}/produce", key=f"k{number}", value=json.dumps({"n": number}), value_form="json")
    found = site.api(f"/topics/{name}/messages?q=%24.order.id%3D42")
    assert [each["key"]["text"] for each in found["items"]] == ["k-1"]
    assert (found["scanned"], found["matched"], found["done"]) == (21, 1, "complete")
    again = site.page(
        f"/topics/{name}/produce?partition={found['items'][0]['partition']}&offset={found['items'][0]['offset']}"
    )
    assert "&#34;id&#34;: 42" in again.text
    lines = site.page(f"/topics/{name}/messages/export?format=jsonl&q=%24.n%3E%3D15").text.splitlines()
    assert sorted(json.loads(line)["value"]["n"] for line in lines) == [15, 16, 17, 18, 19]
    bad = site.send("GET", f"/api/c/{CLUSTER}/topics/{name}/messages?q=%24%5B")
    assert bad.status == 400
    assert "character" in bad.json()["error"]
    assert site.page(f"/topics/{name}/messages?q=%24%5B").status == 200


def test_offsets_are_set_with_a_look_before_and_undone(site: Site, unique: Unique) -> None:
    name, group = unique("topic"), unique("group/with odd?name&")
    site.do("/topics", name=name, partitions=1)
    site.do(f"/topics/{name}/produce", value="x", value_form="text", count=10)
    site.do("/group/reset", id=group, topic=name, to="offset", value="7")
    from urllib.parse import quote

    preview = site.page(f"/group/reset?id={quote(group)}&to=shift&value=-5")
    assert "Set 1 offsets" in preview.text
    assert "--shift-by" in preview.text
    assert site.api(f"/group?id={quote(group)}")["items"][0]["committed"] == 7
    form = {"id": group, "to": "shift", "value": "-5"}
    done = site.submit("/group/reset", form, on=f"/group/reset?id={quote(group)}&to=shift&value=-5")
    assert done.status == 303
    shown = site.api(f"/group?id={quote(group)}")
    assert (shown["items"][0]["committed"], shown["lag"], shown["undo"]["partitions"]) == (2, 8, 1)
    assert site.submit("/group/undo", {"id": group}, on=f"/group?id={quote(group)}").status == 303
    assert site.api(f"/group?id={quote(group)}")["items"][0]["committed"] == 7
    assert site.submit("/group/delete", {"id": group, "confirm": group}, on=f"/group?id={quote(group)}").status == 303
    assert site.page(f"/group?id={quote(group)}").status == 404


def test_dead_letters_go_back_once(site: Site, unique: Unique) -> None:
    name, letters = unique("source"), unique("dead-letter")
    site.do("/topics", name=name, partitions=2)
    site.do("/topics", name=letters, partitions=1)
    why = "\n".join(
        ["trace=t", f"ottla.error.topic={name}", "ottla.error.partition=1", "ottla.error.step=parse",
         "ottla.error.message=no number"]
    )  # fmt: skip
    for value in ("one", "two", "three"):
        site.do(f"/topics/{letters}/produce", key="k", value=value, value_form="text", headers=why)
    shown = site.api(f"/dead-letters?topic={letters}")
    assert [each["letters"] for each in shown["kinds"]] == [3]
    page = f"/dead-letters?topic={letters}"
    assert site.submit("/dead-letters/send", {"topic": letters, "place": ["0:0", "0:1"]}, on=page).status == 303
    assert site.submit("/dead-letters/send", {"topic": letters, "place": "0:0"}, on=page).status == 400
    mended = {"topic": letters, "place": "0:2", "value": "mended", "value_form": "text"}
    assert (
        site.submit(
            "/dead-letters/send", mended, on=f"/dead-letters/letter?topic={letters}&partition=0&offset=2"
        ).status
        == 303
    )
    back = site.api(f"/topics/{name}/messages?q=order%3Aoldest")["items"]
    assert [(each["partition"], each["value"]["text"], each["headers"]) for each in back] == [
        (1, "one", [["trace", "t"]]), (1, "two", [["trace", "t"]]), (1, "mended", [["trace", "t"]]),
    ]  # fmt: skip
    assert all(each["letter"]["sent"] for each in site.api(f"/dead-letters?topic={letters}")["items"])


def test_quotas_and_users(site: Site, unique: Unique) -> None:
    user = unique("user")
    assert site.submit("/users", {"user": user, "password": "correct horse"}, on="/users").status == 303
    assert site.submit("/users", {"user": user, "password": "short"}, on="/users").status == 400
    assert user in [each["user"] for each in site.api("/users?per_page=500")["items"]]
    quota = {"user": user, "key": "producer_byte_rate", "value": "1000000"}
    assert site.submit("/quotas", quota, on="/quotas").status == 303
    assert f"user {user}: at most 1.0 MB a second written" in site.page("/quotas").text
    site.do("/quotas", user=user, key="producer_byte_rate", value="")
    assert user not in site.page("/quotas").text
    assert site.submit("/users/remove", {"user": user, "confirm": user}, on="/users").status == 303
    assert user not in [each["user"] for each in site.api("/users?per_page=500")["items"]]


def test_a_page_is_told_when_there_is_something_new(site: Site) -> None:
    import http.client

    site.page("/")
    connection = http.client.HTTPConnection(site._address, timeout=60)
    connection.request("GET", f"/c/{CLUSTER}/events", headers={"Cookie": site.cookie})
    answer = connection.getresponse()
    assert answer.headers["content-type"].startswith("text/event-stream")
    lines = [answer.readline() for _ in range(3)]
    assert lines[0].startswith(b"retry:")
    assert lines[2] == b"event: look\n"
    connection.close()


STATUS: dict[str, Any] = {
    "time": 1.0,
    "pipelines": [
        {
            "pipeline": "orders<script>", "version": None, "state": "running",
            "queries": [
                {
                    "query": "main", "state": "running", "group": "g", "batch": 7, "batches": 8, "input_rows": 100,
                    "rows_per_second": 12.5, "batch_seconds": 1.5, "batch_parts": {"addBatch": 1.2}, "lag": 5,
                    "sink_rows": {}, "dead_letters": 2, "restarts": 1, "error": "it <b>failed</b>\nat line 2",
                    "graph": {"sources": ["topic orders"], "tables": [], "steps": ["parse"], "sinks": ["topic out"]},
                    "dead_letter_topic": "dl",
                }
            ],
        },
        {"pipeline": "m", "state": "running", "queries": [{"graph": {"sinks": ["mirror target"]}, "lag": 3}]},
    ],
}  # fmt: skip


class Driver(BaseHTTPRequestHandler):
    stopped: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        self._answer(STATUS)

    def do_POST(self) -> None:
        assert self.headers["X-Ottla"]
        self.stopped.append(self.path)
        self._answer({"stopping": ["orders"]})

    def _answer(self, document: object) -> None:
        body = json.dumps(document).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None: ...


def test_pipelines_as_their_drivers_tell(open_console: Open) -> None:
    server = HTTPServer(("127.0.0.1", 0), Driver)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        site = open_console(pipelines=(f"http://127.0.0.1:{server.server_port}/status", "http://127.0.0.1:9"))
        page = site.page("/pipelines").text
        assert "orders&lt;script&gt;" in page
        assert "it &lt;b&gt;failed" in page
        assert "topic orders" in page
        assert "does not answer" in page
        shown = site.api("/pipelines")["drivers"][0]["pipelines"][0]["queries"][0]
        assert (shown["lag"], shown["batch_parts"]) == (5, {"addBatch": 1.2})
        assert [flow["pipeline"] for flow in site.api("/mirroring")["flows"]] == ["m"]
        assert site.page("/").status == 200
        name = "orders<script>"
        assert site.submit("/pipelines/stop", {"pipeline": name, "confirm": name}, on="/pipelines").status == 303
        assert Driver.stopped == ["/stop?pipeline=orders%3Cscript%3E"]
    finally:
        server.shutdown()
        server.server_close()


def test_what_changed_is_told(site: Site, unique: Unique) -> None:
    site.page("/")
    name = unique("noticed")
    site.do("/topics", name=name, partitions=1)
    wait_until(lambda: name in site.page("/").text, "the new topic among the changes", seconds=60)


def test_moving_where_there_is_nothing_to_move(site: Site) -> None:
    assert site.do("/reassignment/elect")["refused"] == 0
    assert site.do("/reassignment/unthrottle")["done"]
    assert site.submit("/reassignment", {"goal": "spread"}, on="/reassignment").status == 400
    assert site.submit("/reassignment/cancel", {}, on="/reassignment").status == 404
    assert site.submit("/reassignment", {"goal": "leave", "broker": "1"}, on="/reassignment").status == 409
    assert site.submit("/reassignment", {"goal": "sideways"}, on="/reassignment").status == 400
