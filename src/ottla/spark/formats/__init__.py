"""Formats: the bytes of a record's value to columns and back, with records that cannot be read kept apart."""
