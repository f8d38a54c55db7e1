"""Limits on how much may be sent in a while. Pure: decisions only, the time comes in."""
