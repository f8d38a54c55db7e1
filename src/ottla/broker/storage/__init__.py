"""Logs on disk in Kafka's formats: segments, indexes, producer state, recovery, retention."""
