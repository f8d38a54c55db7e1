"""Objects with a path, on a disk or in a bucket, seen alike: what the sources of files and S3 have in common."""
