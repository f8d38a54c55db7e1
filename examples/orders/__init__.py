"""The platform's main job, from end to end: `make demo` runs it."""
