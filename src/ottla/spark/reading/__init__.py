"""From topics to frames: options and offsets, readers, records as Arrow."""
