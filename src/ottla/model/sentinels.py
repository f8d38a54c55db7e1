"""The numbers that say "none" in the protocol and on disk."""

NO_EPOCH = -1
"""Of a leader, a group, a producer: not known, or not checked."""
NO_OFFSET = -1
NO_TIMESTAMP = -1
NO_FETCH_SESSION = 0
