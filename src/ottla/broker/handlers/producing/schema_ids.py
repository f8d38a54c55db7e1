"""Records of topics that check schemas: each carries the id of a schema, and that belongs to the topic's subject.

Nothing of this runs for other topics. It runs in a thread: batches are decompressed, and ids that are not known yet are
asked for at the registry, once.
"""

import asyncio
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Self

from ottla.broker.storage.append_rules import SchemaCheck
from ottla.broker.storage.record_errors import MESSAGES_MAX, SHOWN_MAX, InvalidRecords, RecordError
from ottla.config.broker import BrokerSettings
from ottla.model.errors import ApiError, ErrorCode
from ottla.protocol.compression import Buffer
from ottla.protocol.errors import CorruptBatch, MalformedMessage
from ottla.protocol.record_prefixes import common_prefix
from ottla.protocol.records import Record, decode_records, open_batch
from ottla.registry.errors import RegistryError
from ottla.registry.framing import GUID_BYTES, ID_BYTES, ID_MAGIC, KEY_HEADER, VALUE_HEADER, BadFraming, read_id

if TYPE_CHECKING:
    from ottla.registry.client import RegistryClient

KNOWN_SECONDS = 300.0
"""So long an id is believed to belong where it did: subjects are rarely deleted."""
UNKNOWN_SECONDS = 1.0
KEPT_MAX = 100_000
THREADS = 4
REGISTRY_SECONDS_MAX = 10.0

TOPIC_NAME, RECORD_NAME, TOPIC_RECORD_NAME = "TopicNameStrategy", "RecordNameStrategy", "TopicRecordNameStrategy"


class SchemaIds:
    """What the registry has said of ids. Used from threads: entries are replaced whole."""

    def __init__(
        self,
        url: str = "",
        user_info: str | None = None,
        ca_file: str | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._url = url
        self._user_info = user_info
        self._ca_file = ca_file
        self._made: RegistryClient | None = None
        self._pool: ThreadPoolExecutor | None = None
        self._clock = clock
        self._subjects: dict[int | str, tuple[float, frozenset[str]]] = {}

    @classmethod
    def of(cls, settings: BrokerSettings) -> Self:
        return cls(
            settings.confluent_schema_registry_url,
            settings.confluent_basic_auth_user_info,
            settings.confluent_ssl_ca_location,
        )

    def close(self) -> None:
        if self._made is not None:
            self._made.close()
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)

    async def check_in_thread(self, records: Buffer, topic: str, checks: tuple[SchemaCheck, ...]) -> None:
        """In threads of its own: a registry that does not answer holds up nobody who flushes."""
        if self._pool is None:
            self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="schema-ids")
        await asyncio.get_running_loop().run_in_executor(self._pool, self.check, records, topic, checks)

    def check(self, records: Buffer, topic: str, checks: tuple[SchemaCheck, ...]) -> None:
        """Raises InvalidRecords for the records at fault, ApiError where nobody can tell."""
        try:
            header, payload = open_batch(records)
            if self._one_good_id(bytes(payload), header.record_count, topic, checks):
                return
            decoded = decode_records(payload, header)
        except (CorruptBatch, MalformedMessage):
            return  # appending meets the same error and answers it
        faults = [fault for check in checks for fault in self._faults(decoded, topic, check)]
        if faults:
            raise _refusal(sorted(faults, key=lambda fault: fault.batch_index), len(decoded))

    def _one_good_id(self, payload: bytes, count: int, topic: str, checks: tuple[SchemaCheck, ...]) -> bool:
        """Most batches are this: values with the same id, and no headers."""
        if [check.part for check in checks] != ["value"]:
            return False
        prefix = common_prefix(payload, count, ID_BYTES)
        return prefix is not None and prefix[0] == ID_MAGIC and not self._verdict(prefix, topic, checks[0])

    def _faults(self, decoded: list[Record], topic: str, check: SchemaCheck) -> Iterator[RecordError]:
        """What was good once in a batch is only compared."""
        of_key = check.part == "key"
        good: bytes | None = None
        for number, record in enumerate(decoded):
            data = record.key if of_key else record.value
            if data is None:
                continue  # no key, or a tombstone
            if data[:ID_BYTES] == good and not record.headers:
                continue
            problem = self._problem(data, record, topic, check)
            if problem:
                yield RecordError(number, f"{check.part}: {problem}")
            elif not record.headers and data[0] == ID_MAGIC:
                good = data[:ID_BYTES]

    def _problem(self, data: bytes, record: Record, topic: str, check: SchemaCheck) -> str:
        name = KEY_HEADER if check.part == "key" else VALUE_HEADER
        header = next((value for header, value in reversed(record.headers) if header == name and value), None)
        return self._verdict(header if header is not None else data[:GUID_BYTES], topic, check)

    def _verdict(self, framing: bytes, topic: str, check: SchemaCheck) -> str:
        """What is wrong with the id in these bytes; empty if nothing."""
        try:
            framed = read_id(framing)
        except BadFraming as error:
            return str(error)
        key: int | str = framed.guid if framed.guid is not None else framed.schema_id or 0
        subjects = self._subjects_of(key)
        if not subjects:
            return f"schema id {key} is not known to the registry"
        if check.strategy == TOPIC_NAME and f"{topic}-{check.part}" not in subjects:
            return f"schema id {key} is none of subject {topic}-{check.part}"
        if check.strategy == TOPIC_RECORD_NAME and not any(each.startswith(f"{topic}-") for each in subjects):
            return f"schema id {key} is of no subject of topic {topic}"
        return ""

    def _subjects_of(self, key: int | str) -> frozenset[str]:
        known = self._subjects.get(key)
        now = self._clock()
        if known is not None and now < known[0]:
            return known[1]
        found = self._ask(key)
        if len(self._subjects) >= KEPT_MAX:
            self._subjects = {}
        self._subjects[key] = (now + (KNOWN_SECONDS if found else UNKNOWN_SECONDS), found)
        return found

    def _ask(self, key: int | str) -> frozenset[str]:
        client = self._client()
        try:
            ids = [key] if isinstance(key, int) else [each["id"] for each in client.get(f"/schemas/guids/{key}/ids")]
            return frozenset(name for each in ids for name in client.get(f"/schemas/ids/{each}/subjects"))
        except RegistryError as error:
            if error.status == 404:
                return frozenset()
            # Producers try again: whether the record is good nobody can say now.
            raise ApiError(ErrorCode.REQUEST_TIMED_OUT, f"the schema registry cannot be asked: {error}") from error

    def _client(self) -> "RegistryClient":
        if not self._url:
            raise ApiError(
                ErrorCode.INVALID_RECORD,
                "the topic checks schemas, and the broker knows no registry: set confluent.schema.registry.url",
            )
        if self._made is None:
            from ottla.registry.client import RegistryClient  # noqa: PLC0415 - for brokers whose topics check schemas

            user, _, password = (self._user_info or "").partition(":")
            self._made = RegistryClient(
                self._url,
                user=user or None,
                password=password,
                ca_file=self._ca_file,
                seconds_max=REGISTRY_SECONDS_MAX,
            )
        return self._made


def _refusal(faults: list[RecordError], count: int) -> InvalidRecords:
    shown = "; ".join(f"record {fault.batch_index}: {fault.message}" for fault in faults[:SHOWN_MAX])
    more = f"; and {len(faults) - SHOWN_MAX} more" if len(faults) > SHOWN_MAX else ""
    told = [fault if number < MESSAGES_MAX else fault._replace(message=None) for number, fault in enumerate(faults)]
    return InvalidRecords(
        ErrorCode.INVALID_RECORD,
        f"{len(faults)} of the batch's {count} records fail schema validation, so none was appended: {shown}{more}",
        told,
    )
