"""Backups: topics, their settings and groups' offsets as objects in a folder or a bucket, and back again."""
