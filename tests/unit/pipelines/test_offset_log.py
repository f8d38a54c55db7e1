"""Offsets of a batch, as Spark notes them in the checkpoint."""

import pytest

from ottla.model.names import TopicPartition
from ottla.pipelines.errors import FatalFailure
from ottla.pipelines.runner.offset_log import parse_offset_log, records_of

SETTINGS = '{"batchWatermarkMs":0,"batchTimestampMs":1,"conf":{}}'


def test_lines_of_our_topics_count_and_others_do_not() -> None:
    text = "\n".join(
        [
            "v1",
            SETTINGS,
            '{"orders":{"0":5,"1":7},"#from":{"orders":{"0":0,"1":0}}}',
            '{"logOffset":3}',
            "-",
            '{"rows":{"0":1}}',
            "17",
            '{"orders":{"0":4}}',
        ]
    )
    assert parse_offset_log(text, lambda topic: topic == "orders") == {
        TopicPartition("orders", 0): 4,
        TopicPartition("orders", 1): 7,
    }


def test_a_version_that_is_not_known_is_refused() -> None:
    with pytest.raises(FatalFailure, match="version"):
        parse_offset_log("v9\n{}\n", lambda _: True)


def test_how_many_records_a_batch_has() -> None:
    def entry(*lines: str) -> str:
        return "\n".join(["v1", SETTINGS, *lines])

    first = entry('{"orders":{"0":5,"1":7},"#from":{"orders":{"0":2,"1":0}}}')
    second = entry('{"orders":{"0":9,"1":7,"2":4},"#from":{"orders":{"2":1}}}')
    assert records_of(first, None) == 10
    assert records_of(second, first) == 7
    assert records_of(second, None) is None
    assert records_of(entry('{"logOffset":3}'), None) is None
    assert records_of(entry('{"a":{"0":1}}', '{"b":{"0":1}}'), None) is None
