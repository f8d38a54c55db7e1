"""One file per API: what it does, in which versions, and what is missing. table.py is the one list.

What a handler is made of has a room: fetching, producing; what several share is in common.
"""
