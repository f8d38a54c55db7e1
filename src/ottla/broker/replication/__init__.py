"""Partitions: a log, who leads it, how far it is committed, and who waits for that."""
