"""Objects of a bucket as a source of lines."""

import gzip
import random

from tests.asked_bucket import asked_bucket

from ottla.pipelines.connectors.base import RECORD
from ottla.pipelines.connectors.objects.source import ObjectReading, read_objects
from ottla.pipelines.connectors.objects.store import Store, StoredObject


def test_a_compressed_object_comes_in_few_requests() -> None:
    """Arrow unpacks 64 KB at a time: each of them would be a request."""
    lines = [random.Random(number).randbytes(500).hex().encode() for number in range(2_000)]
    with asked_bucket(gzip.compress(b"\n".join(lines))) as (access, asked):
        reading = ObjectReading(store=Store(root="bucket/place", s3=access), parquet=False)
        found = [*read_objects(reading, RECORD, [StoredObject("bucket/place/a.gz", 1, 0)])]
    assert [value for batch in found for value in batch.column("value").to_pylist()] == lines
    assert asked == ["HEAD", "GET"]
