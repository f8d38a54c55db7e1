"""Pipelines and SQL on Spark."""
