"""One file per API: what it does, in which versions, and what is missing. table.py is the one list."""
