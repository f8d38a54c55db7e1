"""A small client of a registry, Ottla's or another one with the same API: for tools and Spark's executors.

It blocks, keeps one connection per thread, and keeps what cannot change: schemas by id and by guid.
"""

import base64
import http.client
import json
import threading
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Self
from urllib.parse import quote, urlencode, urlsplit

from ottla.registry.errors import RegistryError
from ottla.tls.trusting import trusting

SECONDS_MAX = 30.0
MEDIA_TYPE = "application/vnd.schemaregistry.v1+json"
UNREACHABLE = 503


class RegistrySchema(NamedTuple):
    """A schema as a registry gives it; `references` are texts by name, those that are named before who names them."""

    schema_id: int
    schema_type: str
    text: str
    references: tuple[tuple[str, str], ...] = ()
    guid: str = ""
    version: int = 0


class RegistryClient:
    """`urls` are tried in turn: the next one where one does not answer."""

    def __init__(
        self,
        urls: str,
        *,
        user: str | None = None,
        password: str | None = None,
        ca_file: str | None = None,
        seconds_max: float = SECONDS_MAX,
    ) -> None:
        self.urls = [url.strip().rstrip("/") for url in urls.split(",") if url.strip()]
        if not self.urls or any(not url.startswith(("http://", "https://")) for url in self.urls):
            raise RegistryError(UNREACHABLE, f"`{urls}` is not the address of a registry: write http://HOST:PORT")
        self._headers = {
            "Accept": MEDIA_TYPE,
            "Content-Type": MEDIA_TYPE,
            "Confluent-Accept-Unknown-Properties": "true",
        }
        if user is not None:
            encoded = base64.b64encode(f"{user}:{password or ''}".encode()).decode()
            self._headers["Authorization"] = f"Basic {encoded}"
        self._tls = trusting(ca_file) if urls.startswith("https") else None
        self._seconds_max = seconds_max
        self._local = threading.local()
        self._opened: list[http.client.HTTPConnection] = []
        self._by_id: dict[tuple[str, int], RegistrySchema] = {}
        self._by_guid: dict[str, RegistrySchema] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """The connections of all threads; who asks again opens new ones."""
        opened, self._opened = self._opened, []
        for connection in opened:
            connection.close()

    # What is asked for.

    def schema(self, schema_id: int, subject: str = "") -> RegistrySchema:
        """By id; RegistryError 40403 if there is none."""
        known = self._by_id.get((subject, schema_id))
        if known is None:
            query = {"subject": subject} if subject else {}
            known = self._read(schema_id, self.get(f"/schemas/ids/{schema_id}", query))
            self._by_id[subject, schema_id] = known
        return known

    def schema_by_guid(self, guid: str) -> RegistrySchema:
        known = self._by_guid.get(guid)
        if known is None:
            ids = self.get(f"/schemas/guids/{guid}/ids")
            found = self.get(f"/schemas/guids/{guid}")
            known = self._by_guid[guid] = self._read(ids[0]["id"] if ids else -1, found)
        return known

    def latest(self, subject: str) -> RegistrySchema:
        return self.version(subject, "latest")

    def version(self, subject: str, version: int | str, *, deleted: bool = False) -> RegistrySchema:
        found = self.get(f"/subjects/{_part(subject)}/versions/{version}", {"deleted": "true"} if deleted else None)
        return self._read(found["id"], found)

    def versions(self, subject: str, *, deleted: bool = False) -> list[int]:
        """Those that are hidden too, with `deleted`."""
        query = {"deleted": "true"} if deleted else None
        found: list[int] = self.get(f"/subjects/{_part(subject)}/versions", query)
        return found

    def register(
        self, subject: str, text: str, schema_type: str = "AVRO", references: Sequence[Mapping[str, Any]] = ()
    ) -> RegistrySchema:
        body = _body(text, schema_type, references)
        found = self.call("POST", f"/subjects/{_part(subject)}/versions", body=body)
        return self._registered(found, text, schema_type)

    def look_up(
        self, subject: str, text: str, schema_type: str = "AVRO", references: Sequence[Mapping[str, Any]] = ()
    ) -> RegistrySchema:
        found = self.call("POST", f"/subjects/{_part(subject)}", body=_body(text, schema_type, references))
        return self._registered(found, text, schema_type)

    def _registered(self, found: Mapping[str, Any], text: str, schema_type: str) -> RegistrySchema:
        known = {"schema": text, "schemaType": schema_type, **found}
        return self._read(found["id"], known)

    def _read(self, schema_id: int, found: Mapping[str, Any]) -> RegistrySchema:
        return RegistrySchema(
            schema_id,
            found.get("schemaType") or "AVRO",
            found["schema"],
            tuple(self._references(found.get("references") or []).items()),
            found.get("guid") or "",
            found.get("version") or 0,
        )

    def _references(self, references: Sequence[Mapping[str, Any]]) -> dict[str, str]:
        texts: dict[str, str] = {}
        for each in references:
            if each["name"] not in texts:
                found = self.get(f"/subjects/{_part(each['subject'])}/versions/{each['version']}", {"deleted": "true"})
                texts |= self._references(found.get("references") or [])
                texts[each["name"]] = found["schema"]
        return texts

    # How.

    def get(self, path: str, query: Mapping[str, str] | None = None) -> Any:
        return self.call("GET", path, query)

    def call(
        self, method: str, path: str, query: Mapping[str, str] | None = None, body: Mapping[str, Any] | None = None
    ) -> Any:
        target = f"{path}?{urlencode(query)}" if query else path
        encoded = None if body is None else json.dumps(body).encode()
        failures = []
        for url in self.urls:
            try:
                status, answer = self._exchange(url, method, target, encoded)
            except (OSError, http.client.HTTPException) as error:
                failures.append(f"{url}: {error}")
                continue
            return _document(status, answer, url)
        raise RegistryError(UNREACHABLE, f"no schema registry answers: {'; '.join(failures)}")

    def _exchange(self, url: str, method: str, target: str, body: bytes | None) -> tuple[int, bytes]:
        """On the connection that is open; one that the other side has closed meanwhile is opened once more."""
        kept: dict[str, http.client.HTTPConnection] = self._local.__dict__.setdefault("connections", {})
        connection = kept.get(url)
        if connection is not None and connection.sock is not None:
            try:
                return self._send(connection, url, method, target, body)
            except (OSError, http.client.HTTPException):
                connection.close()
        connection = kept[url] = self._connect(url)
        return self._send(connection, url, method, target, body)

    def _send(
        self, connection: http.client.HTTPConnection, url: str, method: str, target: str, body: bytes | None
    ) -> tuple[int, bytes]:
        connection.request(method, urlsplit(url).path + target, body, self._headers)
        response = connection.getresponse()
        return response.status, response.read()

    def _connect(self, url: str) -> http.client.HTTPConnection:
        where = urlsplit(url)
        host = where.hostname or ""
        made = (
            http.client.HTTPSConnection(host, where.port, timeout=self._seconds_max, context=self._tls)
            if where.scheme == "https"
            else http.client.HTTPConnection(host, where.port, timeout=self._seconds_max)
        )
        self._opened = [each for each in self._opened if each.sock is not None]
        self._opened.append(made)
        return made


def _part(subject: str) -> str:
    return quote(subject, safe="")


def _body(text: str, schema_type: str, references: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    body: dict[str, Any] = {"schema": text}
    if schema_type != "AVRO":
        body["schemaType"] = schema_type
    if references:
        body["references"] = list(references)
    return body


def _document(status: int, answer: bytes, url: str) -> Any:
    try:
        document = json.loads(answer) if answer else None
    except ValueError:
        raise RegistryError(UNREACHABLE, f"{url} answers {status} and no JSON: is it a schema registry?") from None
    if status >= 400:
        told = document if isinstance(document, dict) else {}
        raise RegistryError(int(told.get("error_code", status)), str(told.get("message", f"HTTP {status}")))
    return document
