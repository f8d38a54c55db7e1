"""Pipelines to read, run and copy from. Each folder has a pipeline file; tests/examples runs every one."""
