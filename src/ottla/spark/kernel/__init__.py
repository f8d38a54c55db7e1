"""Records to Arrow columns and back: a compiled kernel, and a twin in Python with the same interface."""
