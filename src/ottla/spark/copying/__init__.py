"""Batches of one cluster copied to another as they are, by tasks: their bytes never become rows. `reader` plans it as a
streaming read whose rows only tell what was copied."""
