"""A Spark driver that stays: one JVM for many commands, each of which is a session of its own in it."""
