"""Schemas through the console: checked before they are registered, compared, used to read and write records."""

from collections.abc import Callable, Iterator

import pytest

from ottla.testing import RunningBroker
from ottla.testing.registry import registry

from .conftest import Open, Site
from .test_pages import check

Unique = Callable[[str], str]

FIRST = '{"type": "record", "name": "Order", "fields": [{"name": "id", "type": "int"}]}'
SECOND = FIRST.replace("}]}", '}, {"name": "note", "type": "string", "default": ""}]}')
BREAKING = FIRST.replace("}]}", '}, {"name": "note", "type": "string"}]}')


@pytest.fixture
def site(open_console: Open, ottla_broker: RunningBroker) -> Iterator[Site]:
    with registry(ottla_broker.bootstrap) as running:
        yield open_console(registry=running.url)


def test_a_schema_from_its_check_to_its_records(site: Site, unique: Unique) -> None:
    topic = unique("orders")
    subject = f"{topic}-value"
    site.do("/topics", name=topic, partitions=1)
    assert site.do("/schemas/check", subject=subject, schema=FIRST)["new"]
    site.do("/schemas/register", subject=subject, schema=FIRST)
    told = site.do("/schemas/check", subject=subject, schema=BREAKING)
    assert not told["compatible"]
    assert told["messages"]
    assert site.do("/schemas/check", subject=subject, schema=SECOND)["changes"] == ['+ fields[note]: string = ""']
    page = site.submit("/schemas/check", {"subject": subject, "schema": BREAKING}, on="/schemas")
    assert "It does not fit" in page.text
    site.do("/schemas/register", subject=subject, schema=SECOND)
    assert site.api(f"/schema?subject={subject}")["versions"] == [1, 2]
    assert "AVRO, version 2, id" in site.page(f"/schema?subject={subject}").text
    for path in ("/schemas", f"/schema?subject={subject}", f"/schema?subject={subject}&version=1"):
        check(site.page(path))
    form = {"value": '{"id": 7, "note": "x"}', "value_form": "schema", "value_subject": subject}
    site.do(f"/topics/{topic}/produce", **form)
    (found,) = site.api(f"/topics/{topic}/messages?q=%24.id%3D7")["items"]
    assert (found["value"]["kind"], found["value"]["document"]) == ("avro", {"id": 7, "note": "x"})
    wrong = site.submit(f"/topics/{topic}/produce", {**form, "value": '{"id": "no"}'}, on=f"/topics/{topic}/produce")
    assert wrong.status == 400
    site.do("/schemas/level", subject=subject, level="NONE")
    assert site.do("/schemas/check", subject=subject, schema=BREAKING)["compatible"]
    assert (
        site.submit("/schemas/delete", {"subject": subject, "confirm": "x"}, on=f"/schema?subject={subject}").status
        == 400
    )
    site.do("/schemas/delete", subject=subject, confirm=subject)
    assert site.page(f"/schema?subject={subject}").status == 404
