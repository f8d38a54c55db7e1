"""What the files of a log hold, read without a broker."""
