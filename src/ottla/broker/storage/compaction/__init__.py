"""The log cleaner: keeps the newest record of each key in compacted topics."""
