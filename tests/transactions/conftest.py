"""kafka-python is imported before pytest turns its warnings into errors."""

import warnings

with warnings.catch_warnings():
    # kafka-python reads its schemas by a function that Python 3.11 has deprecated; its import is the only place.
    warnings.simplefilter("ignore", DeprecationWarning)
    import kafka

# A consumer that subscribes while its first request for metadata, which names no topics, is on its way takes the answer
# for the one it wants, and asks again when that is too old: let it be so soon. (3.0.12, on a busy machine.)
kafka.KafkaConsumer.DEFAULT_CONFIG["metadata_max_age_ms"] = 2_000
