"""The wire: frames, messages, their codec, and record batches. Bytes in, values out; no I/O."""
