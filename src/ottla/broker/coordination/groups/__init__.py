"""Consumer groups of the classic protocol as state machines: no I/O, no clock, no randomness."""
