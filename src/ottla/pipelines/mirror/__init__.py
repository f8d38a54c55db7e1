"""Mirroring: topics of one cluster in another, with their settings and the offsets of their consumer groups."""
