"""Connectors: one small module per system that data comes from or goes to. `base` says what one looks like."""
