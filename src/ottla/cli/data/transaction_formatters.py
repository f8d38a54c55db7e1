"""The formatter of `__transaction_state`: transactional ids as JSON."""

import json
from typing import BinaryIO

from confluent_kafka import Message

from ottla.cli.common.transaction_records_json import Json, key_json, value_json
from ottla.cli.data.deserializers import UndecodableRecord
from ottla.protocol.errors import MalformedMessage
from ottla.protocol.transaction_records import TRANSACTION_LOG, decode_transaction_key


class TransactionLogFormatter:
    def write(self, record: Message, out: BinaryIO) -> None:
        raw_key, raw_value = record.key(), record.value()
        if raw_key is None:
            return
        try:
            transactional_id = decode_transaction_key(raw_key)
            if transactional_id is None:
                return
            document: Json = {"key": {"type": TRANSACTION_LOG, "data": key_json(transactional_id)}, "value": None}
            if raw_value is not None:
                version, fields = value_json(raw_value)
                document["value"] = {"version": version, "data": fields}
        except MalformedMessage as error:
            raise UndecodableRecord(f"cannot read the record at offset {record.offset()}: {error}") from error
        out.write(json.dumps(document, separators=(",", ":"), ensure_ascii=False).encode() + b"\n")
