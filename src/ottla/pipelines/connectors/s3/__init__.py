"""Buckets behind the S3 API."""
