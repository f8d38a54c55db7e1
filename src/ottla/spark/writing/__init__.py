"""From frames to topics: writers of streams and of micro-batches, their transactions, rows as records."""
