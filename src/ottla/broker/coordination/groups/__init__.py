"""Consumer groups as state machines: no I/O, no clock, no randomness.

machine.py holds all groups of a partition, offsets.py what they commit; classic/ and consumer/ are the two protocols.
"""
