"""Spark's Python workers on this machine: forked from a process that has imported what all of them need."""
