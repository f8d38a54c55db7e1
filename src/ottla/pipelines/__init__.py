"""Pipelines: files that say where data comes from, what happens to it and where it goes, run on Spark."""
