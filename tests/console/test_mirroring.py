"""Flows of a mirror, switched from the console: the commands that do it are run, for files that it was told of."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from ottla.client import admin
from ottla.client.mirrored import MirroredLog
from ottla.client.settings import client_settings
from ottla.console.access.gate import AccessSettings
from ottla.console.access.roles import BUILT_IN
from ottla.console.pages.mirroring import promoted_words, returned_words
from ottla.console.tools import read
from ottla.model.names import TopicPartition
from ottla.protocol.records import NewRecord, encode_batch
from ottla.testing import RunningBroker
from ottla.testing.waiting import wait_until

from .conftest import Open, Site
from .test_pages import check

Unique = Callable[[str], str]

NOBODY = "127.0.0.1:1"


async def stand_by(bootstrap: str, topic: str) -> None:
    """A topic as a mirror leaves it: one record of a source that is gone since."""
    cluster = client_settings({"bootstrap.servers": bootstrap}).cluster()
    try:
        source = "elsewhere/1"
        await admin.create_topic(cluster, topic, partitions=1, replication_factor=1, configs={"mirror.source": source})
        record = encode_batch([NewRecord(None, b"v", 1)])
        await MirroredLog(cluster, TopicPartition(topic, 0), source).append(0, record)
    finally:
        await cluster.close()


@pytest.fixture
def mirror(ottla_broker: RunningBroker, unique: Unique, tmp_path: Path) -> str:
    name = unique("standby")
    asyncio.run(stand_by(ottla_broker.bootstrap, name))
    flow = {"from": "east", "to": "west", "topics": name, "names": "keep", "offsets": "keep"}
    bases = {"east": {"bootstrap": NOBODY}, "west": {"bootstrap": ottla_broker.bootstrap}}
    (tmp_path / "mirror.yaml").write_text(yaml.safe_dump({"name": name, "clusters": bases, "flows": [flow]}))
    return name


@pytest.mark.timeout(300)
def test_a_flow_is_paused_and_its_standby_promoted(open_console: Open, mirror: str, tmp_path: Path) -> None:
    told = {"mirrors": (str(tmp_path / "mirror.yaml"),), "state_dir": str(tmp_path / "state")}
    site, flow = open_console(**told), f"{mirror}.east-west"

    def row() -> dict[str, object]:
        found = site.api("/mirroring")["of_files"]
        return found[0] if found else {}

    wait_until(lambda: row().get("pipeline") == flow, "the flow of the file", seconds=120)
    page = site.page("/mirroring")
    check(page)
    assert f"Promote {flow}" in page.text
    assert f"ottla mirror promote {tmp_path / 'mirror.yaml'} --flow east-west" in page.text

    assert site.submit("/mirroring/pause", {"flow": flow, "confirm": "yes"}, on="/mirroring").status == 400
    paused = site.submit("/mirroring/pause", {"flow": flow, "confirm": flow}, on="/mirroring")
    assert f"{flow} is paused" in site.send("GET", paused.headers["location"]).text
    wait_until(lambda: row().get("paused") is True, "the flow to rest", seconds=120)
    assert f"Resume {flow}" in site.page("/mirroring").text

    done = site.do("/mirroring/promote", flow=flow, confirm=flow)
    assert [each["topics"] for each in done["flows"]] == [[mirror]]
    assert "what the source had beyond that is not known" in done["done"]
    settings = site.api(f"/topics/{mirror}/settings")["settings"]
    assert [each["value"] for each in settings if each["name"] == "mirror.source"] == [""]

    back = site.submit("/mirroring/failback", {"flow": flow, "confirm": flow}, on="/topics/new")
    assert (back.status, NOBODY in back.text) == (409, True)  # the old active cluster has to be there for that
    stop = site.submit("/mirroring/stop", {"flow": flow, "confirm": flow}, on="/topics/new")
    assert (stop.status, "runs here" in stop.text) == (400, True)

    operator = open_console(AccessSettings(open_role=BUILT_IN["operator"]), **told)
    assert operator.submit("/mirroring/promote", {"flow": flow, "confirm": flow}, on="/topics/new").status == 403


def test_only_flows_of_files_that_it_was_told_of(site: Site) -> None:
    answer = site.submit("/mirroring/pause", {"flow": "dr.a-b", "confirm": "dr.a-b"}, on="/topics/new")
    assert answer.status == 400
    assert "no file that this console was told of" in answer.text


def test_a_mirror_is_started_by_its_file_and_no_other(open_console: Open, mirror: str, tmp_path: Path) -> None:
    file = tmp_path / "mirror.yaml"
    file.with_name("mirror-back.yaml").write_text(file.read_text())
    file.with_name("other.yaml").write_text(file.read_text())
    site = open_console(mirrors=(str(file),), state_dir=str(tmp_path / "state"))
    assert [each["name"] for each in site.api("/mirroring")["files"]] == ["mirror.yaml", "mirror-back.yaml"]
    for name in ("other.yaml", "../mirror.yaml", str(file)):
        assert site.submit("/mirroring/start", {"file": name, "confirm": name}, on="/topics/new").status == 400
    unsure = site.submit("/mirroring/start", {"file": "mirror.yaml", "confirm": "yes"}, on="/topics/new")
    assert unsure.status == 400


def test_what_a_failback_came_to() -> None:
    tail = {"partition": "orders-0", "first": 7, "records": 3}
    told = {"file": "/etc/mirror-back.yaml", "flows": [{"topics": ["orders"], "discarded": [tail]}]}
    words = "orders will be copied back by mirror-back.yaml: start it; 3 records are discarded"
    assert returned_words(told) == words


def test_what_a_command_says() -> None:
    assert read(1, '[{"a": 1}]\n', "warning: it does not run\n").document == [{"a": 1}]
    assert read(1, "", "note: x\nerror: there is no file m.yaml\n").error == "there is no file m.yaml"
    assert read(1, "", "error: nothing was restored:\n  orders has records\n").error.endswith("orders has records")
    assert read(-9, "", "").error == "it ended with code -9 and said nothing"


@pytest.mark.parametrize(
    ("told", "words"),
    [
        ({"missing_records": 0, "source_answers": True}, "orders; 0 records were not replicated"),
        (
            {"missing_records": 7, "source_answers": False, "seen_seconds_ago": 2.0, "aborted_transactions": 1},
            "orders; 7 records that the source had 2.0 s before were not replicated; 1 open transactions are aborted",
        ),
    ],
)
def test_what_a_promotion_came_to(told: dict[str, object], words: str) -> None:
    assert promoted_words({"topics": ["orders"], **told}) == words
